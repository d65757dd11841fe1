"""Where a campaign's next minute and dollar go: to the item with the most to gain for its price.

A visit gives an item the campaign's budget once more. The choice is a pure function of what the store has.
Its model: a visit of an item that is not solved solves it with a probability between its own record and that
of the campaign. The log speedup of a solution is normal around a mean between the item's own and the
campaign's, and cannot pass the item's speed of light. An item's best after n visits is taken for the greatest
of n draws (Blom, 1958), so visits without a gain lower what the next one promises. The index is the expected
improvement of the objective (Mockus, 1975) over the visit's price, as in `agentforge.search.gain_per_cost`.
"""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist

from pydantic import Field

from agentforge.schema import FrozenModel, UsageError

from .scores import sol_score

_POINTS = [NormalDist().inv_cdf((i + 0.5) / 32) for i in range(32)]
_CHANCES = 2.0
"""Visits that the campaign's share of solved items counts for in an item's own."""
_WITHIN = 0.5
"""Deviation between visits of one item over that between items."""
_LEAST_SD = 0.25
"""Least deviation of log speedups between items: few items may agree by chance."""
_HOUR = 1.0
"""Dollars for an hour of a worker if only some arms cost dollars: else nothing compares them."""
_LEAST_GAIN = 1e-4
"""Expected gain of the objective below which a visit is not worth its price."""


class Prices(FrozenModel):
    """What a visit's time costs."""

    hour: float = Field(default=0.0, ge=0)
    """Dollars for an hour of a worker's wall time."""
    device_hour: float = Field(default=0.0, ge=0)
    """Dollars for an hour in which the device measures."""


class Past(FrozenModel):
    """What the store has of one item."""

    item: int
    problem: str
    arm: str
    visits: int = Field(ge=1)
    best: float | None = None
    """Log speedup of its verified solution over the fastest baseline; None if there is none."""
    limit: float = math.inf
    """Log speedup at the speed of light; infinite if that is not known."""
    seconds: float = Field(ge=0)
    """Wall time of all visits, as the next two are of all visits."""
    device_seconds: float = Field(default=0.0, ge=0)
    dollars: float | None = Field(default=0.0, ge=0)
    """None if a price is unknown; a visit's price then has the mean of its arm."""
    most_dollars: float = Field(default=0.0, ge=0)
    """Dollars that the next visit can spend: its share, and what the earlier ones left of theirs. Infinite if
    the campaign limits none, as is the share."""
    share: float = Field(default=0.0, ge=0)
    """Dollars that each visit after the next one can spend."""

    def time_dollars(self, prices: Prices) -> float:
        """Dollars for the time of a visit: the mean of the visits so far."""
        time = prices.hour * self.seconds + prices.device_hour * self.device_seconds
        return time / 3600 / self.visits


class Visit(FrozenModel):
    """A visit that is worth its price."""

    item: int
    problem: str
    arm: str
    gain: float
    """Expected gain of the objective, summed over the problems."""
    seconds: float
    """Expected wall time."""
    dollars: float | None
    """Expected cost of language models; None if a price is unknown."""
    most_dollars: float | None
    """The most that they can cost; None if the campaign does not limit it."""


@dataclass(frozen=True)
class Objective:
    """What a campaign is for: `fast_P`, `speedup` (the mean log speedup) or `sol` (the SOL score).

    Raises:
        UsageError: another name.
    """

    name: str

    def __post_init__(self) -> None:
        if self.name not in ("speedup", "sol") and self._threshold() is None:
            raise UsageError(f"--objective {self.name!r} is none: give fast_1, fast_1.5, ..., speedup or sol")

    def _threshold(self) -> float | None:
        kind, _, text = self.name.partition("_")
        try:
            p = float(text)
        except ValueError:
            return None
        return p if kind == "fast" and math.isfinite(p) and p >= 0 else None

    @property
    def needs_all(self) -> bool:
        """Whether a definition counts only if all its workloads are solved."""
        return self.name != "speedup"

    def value(self, log_speedup: float | None, limit: float) -> float:
        """Of one problem; a problem without a solution keeps its baseline.

        Args:
            log_speedup: None if there is no solution.
            limit: as `Past.limit`.
        """
        p = self._threshold()
        if p is not None:
            return float(log_speedup is not None and math.exp(log_speedup) > p)
        if self.name == "speedup":
            return max(0.0, log_speedup or 0.0)
        if log_speedup is None or limit <= 0 or math.isinf(limit):
            return 0.0  # the score leaves out problems whose speed of light is not known
        return sol_score(math.exp(-log_speedup), 1.0, math.exp(-limit))


@dataclass(frozen=True)
class _Field:
    """All items of a campaign together."""

    solved: float
    """Share of items with a solution."""
    mean: float
    sd: float

    @classmethod
    def of(cls, items: Sequence[Past]) -> _Field:
        found = [item.best for item in items if item.best is not None]
        return cls(
            solved=(len(found) + 1) / (len(items) + 2),
            mean=statistics.fmean(found) if found else 0.0,
            sd=max(_LEAST_SD, statistics.stdev(found) if len(found) > 1 else 0.0),
        )


def _gain(item: Past, field: _Field, objective: Objective) -> float:
    """What one more visit is expected to add to the objective's sum over all problems."""
    n = item.visits
    if item.best is None:
        chance, mean, sd = _CHANCES * field.solved / (n + _CHANCES), field.mean, field.sd
    else:
        own = _WITHIN * field.sd
        greatest = NormalDist().inv_cdf((n - 0.375) / (n + 0.25))  # of n standard normal draws
        known = n / (n + _WITHIN**2)  # the weight of the item's own record
        chance, mean = 1.0, known * (item.best - own * greatest) + (1 - known) * field.mean
        sd = own * math.sqrt(1 + 1 / (n + _WITHIN**2))
    now = objective.value(item.best, item.limit)
    after = (objective.value(min(mean + sd * z, item.limit), item.limit) for z in _POINTS)
    return chance * statistics.fmean(max(0.0, value - now) for value in after)


def visit_prices(items: Sequence[Past], prices: Prices) -> dict[int, float]:
    """What a visit of each item costs, all in one unit: dollars if an arm costs some, else seconds.

    A visit of an item without known dollars costs as much as its arm's mean. If other arms cost nothing, the
    time of a worker has the price `_HOUR`.
    """
    calls = {item.item: (item.dollars or 0.0) / item.visits for item in items}
    usual = _means(items, calls)
    calls |= {item.item: usual[item.arm] for item in items if item.dollars is None}
    for priced in (prices, prices.model_copy(update={"hour": _HOUR})):
        money = {item.item: calls[item.item] + item.time_dollars(priced) for item in items}
        means = _means(items, money)
        if all(means.values()):
            return {item.item: money[item.item] or means[item.arm] for item in items}
        if not any(means.values()):
            break
    return {item.item: max(1e-9, item.seconds / item.visits) for item in items}


def _means(items: Sequence[Past], dollars: Mapping[int, float]) -> dict[str, float]:
    """The mean of each arm's items that cost something; 0 if none does."""
    found = defaultdict[str, list[float]](list)
    for item in items:
        found[item.arm] += [dollars[item.item]] if dollars[item.item] > 0 else []
    return {arm: statistics.fmean(own) if own else 0.0 for arm, own in found.items()}


def allocate(
    items: Sequence[Past],
    objective: Objective,
    prices: Prices = Prices(),
    *,
    seconds: float = math.inf,
    dollars: float = math.inf,
    most: int | None = None,
) -> tuple[Visit, ...]:
    """The visits to make, best first, until no more fit the limits or nothing is worth a visit.

    A visit that is planned counts as one without a gain for the next choice, and an item gets at most as many
    as it had: what they bring is to be seen before the next ones.

    Args:
        seconds: wall time of all visits together, as expected from the earlier ones.
        dollars: the most that language models can cost in all visits together.
        most: visits; None has no limit.
    """
    field, visits, price = _Field.of(items), list[Visit](), visit_prices(items, prices)
    most_of = {item.item: 2 * item.visits for item in items}
    left = {item.item: (item, _gain(item, field, objective)) for item in items}
    while True:
        able = [
            (gain / price[item.item], item, gain)
            for item, gain in left.values()
            if gain >= _LEAST_GAIN
            and item.visits < most_of[item.item]
            and item.seconds / item.visits <= seconds
            and item.most_dollars <= dollars
        ]
        if not able or len(visits) == most:
            return tuple(visits)
        _, item, gain = max(able, key=lambda entry: entry[0])
        visit = Visit(
            item=item.item,
            problem=item.problem,
            arm=item.arm,
            gain=gain,
            seconds=item.seconds / item.visits,
            dollars=None if item.dollars is None else item.dollars / item.visits,
            most_dollars=item.most_dollars if math.isfinite(item.most_dollars) else None,
        )
        visits.append(visit)
        seconds -= visit.seconds
        dollars -= visit.most_dollars or 0.0  # without a limit of its own, a visit fits only no limit at all
        more = (item.visits + 1) / item.visits
        item = item.model_copy(
            update={
                "visits": item.visits + 1,
                "seconds": item.seconds * more,
                "device_seconds": item.device_seconds * more,
                "dollars": None if item.dollars is None else item.dollars * more,
                "most_dollars": item.share,
            }
        )
        left[item.item] = (item, _gain(item, field, objective))
