"""Two arms on the same problems, compared in pairs."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
from scipy import stats

from agentforge.schema import Campaign, FrozenModel, Interval, SuiteProblem, UsageError
from agentforge.store import Store

from .report import BEST, CampaignReport, ItemReport, build_report

_RESAMPLES = 9999
_CONDITIONS = {"budget": "budget", "limit_s": "limit of time", "settings": "settings", "version": "version"}
"""Fields of a campaign that decide its figures, as messages name them."""


_Pairs = Sequence[tuple[ItemReport, ItemReport]]
"""Results of A and B for the same problem, or for the same workload of a definition."""


class Comparison(FrozenModel):
    """Arm A against arm B, by problems that both have ended. Workloads of one definition are one problem."""

    a: str
    b: str
    """`CAMPAIGN/ARM`."""
    baseline: str
    problems: int
    """Problems that both have ended; the others are left out, and those with another text in B."""
    both: int
    """Problems that both solved with a verified solution."""
    measured: int
    """Of these, problems that both measured against the baseline: `ratio` rests on them."""
    only_a: int
    only_b: int
    neither: int
    solved_p: float
    """Exact p-value of McNemar's test: would equal arms differ so much in what they solve?"""
    ratio: Interval | None
    """Geometric mean of speedup A / speedup B over problems that both solved, with its 95% bootstrap
    interval; None for fewer than two."""
    ratio_p: float | None
    """P-value of Wilcoxon's signed-rank test on the logarithms of these ratios."""
    seconds_ratio: float | None
    """Wall time of A / of B, over all compared problems."""
    dollars_ratio: float | None
    """None if the cost of a call is unknown, or B was free."""
    other_devices: int = 0
    """Problems that A measured on another device than B."""
    other_visits: int = 0
    """Problems on which A may have spent another number of budgets than B."""
    differs: tuple[str, ...] = ()
    """What differs between A and B beside their agents."""


def compare(store: Store, a: str, b: str, *, baseline: str = BEST) -> Comparison:
    """Compare two arms.

    Args:
        a: `CAMPAIGN/ARM`, or a campaign with one arm.
        baseline: of the speedups: `eager`, `compile` or `BEST`.

    Raises:
        UsageError: no such campaign or arm, or no problem that both have ended.
    """
    (name_a, arm_a, one), (name_b, arm_b, other) = _arms(store, a, b)
    items_a, items_b = one.of_arm(arm_a), other.of_arm(arm_b)
    named = items_a.keys() & items_b.keys()
    others = _other_texts(store, one.campaign, other.campaign) & named
    workloads: dict[str, list[tuple[ItemReport, ItemReport]]] = {}
    for name, item in items_a.items():
        if name in named - others:
            workloads.setdefault(item.task, []).append((item, items_b[name]))
    problems = [rows for rows in workloads.values() if all(_ended(x) and _ended(y) for x, y in rows)]
    if not problems:
        why = "".join(f"; {text}" for text in _left_out(others))
        raise UsageError(
            f"{name_a} and {name_b} have ended no problem in common{why}: nothing can be compared"
        )
    pairs = [pair for rows in problems for pair in rows]
    solved = [(all(x.verified for x, _ in rows), all(y.verified for _, y in rows)) for rows in problems]
    only_a, only_b = solved.count((True, False)), solved.count((False, True))
    both = [rows for rows, each in zip(problems, solved, strict=True) if all(each)]
    logs = [log for rows in both if (log := _log_ratio(rows, baseline)) is not None]
    known = {name for x, y in pairs for item in (x, y) for name in item.speedup}
    if (both and not logs) or baseline not in {BEST, "eager", "compile", *known}:
        raise UsageError(
            f"no problem was measured against {baseline!r} by both arms: choose another --baseline, one of "
            f"{', '.join([BEST, *sorted(known)])}"
        )
    return Comparison(
        a=name_a,
        b=name_b,
        baseline=baseline,
        problems=len(problems),
        both=len(both),
        measured=len(logs),
        only_a=only_a,
        only_b=only_b,
        neither=solved.count((False, False)),
        solved_p=float(stats.binomtest(only_a, only_a + only_b).pvalue) if only_a + only_b else 1.0,
        ratio=_ratio(logs),
        ratio_p=float(stats.wilcoxon(logs).pvalue) if any(logs) else None,
        seconds_ratio=_quotient([x.seconds for x, _ in pairs], [y.seconds for _, y in pairs]),
        dollars_ratio=_quotient([_dollars(x) for x, _ in pairs], [_dollars(y) for _, y in pairs]),
        other_devices=len(_on_other_devices(pairs)),
        other_visits=len(_other_visits(pairs)),
        differs=(*_left_out(others), *_differences(one.campaign, other.campaign, pairs)),
    )


def _arms(store: Store, *specs: str) -> list[tuple[str, str, CampaignReport]]:
    """The full name of each arm, its own, and the report of its campaign, which is built once."""
    found, reports = [], dict[str, CampaignReport]()
    for spec in specs:
        campaign, _, arm = spec.partition("/")
        reports[campaign] = report = reports.get(campaign) or build_report(store, campaign)
        known = [one.name for one in report.campaign.arms]
        if not arm and len(known) == 1:
            arm = known[0]
        if arm not in known:
            names = ", ".join(f"{campaign}/{name}" for name in known)
            raise UsageError(f"{spec!r} names no arm: write one of {names}")
        found.append((f"{campaign}/{arm}", arm, report))
    return found


def _ended(item: ItemReport) -> bool:
    """Whether it is over, or has the result of an earlier visit."""
    return item.state.over or bool(item.mode)


def _log_ratio(pairs: _Pairs, baseline: str) -> float | None:
    """Logarithm of speedup A / speedup B, its mean over several workloads; None if one was not measured."""
    found = [both for x, y in pairs if (both := _speedups(x, y, baseline))]
    if len(found) < len(pairs):
        return None
    return math.fsum(math.log(x / y) for x, y in found) / len(found)


def _speedups(x: ItemReport, y: ItemReport, baseline: str) -> tuple[float, float] | None:
    """Of both, over the baseline, or over the fastest of those that both measured; None if there is none."""
    names = x.speedup.keys() & y.speedup.keys()
    if baseline != BEST:
        names &= {baseline}
    if not names:
        return None
    return min(x.speedup[name].point for name in names), min(y.speedup[name].point for name in names)


def _other_texts(store: Store, a: Campaign, b: Campaign) -> frozenset[str]:
    """Problems with one identifier that are not the same in two campaigns.

    If one of them was imported without texts, nothing tells, and they count as the same.
    """
    if a.problems_hash == b.problems_hash:
        return frozenset()
    first, second = ({p.id: p for p in store.campaign_problems(one.name)} for one in (a, b))
    return frozenset(p for p in first.keys() & second.keys() if _differ(first[p], second[p]))


def _differ(a: SuiteProblem, b: SuiteProblem) -> bool:
    return bool(a.source) == bool(b.source) and a.hash != b.hash


def _left_out(others: frozenset[str]) -> Iterator[str]:
    if others:
        yield f"{len(others)} problems have another text in B and are left out, such as {min(others)}"


def _on_other_devices(pairs: _Pairs) -> dict[str, tuple[ItemReport, ItemReport]]:
    """By problem, results of two devices."""
    return {x.task: (x, y) for x, y in pairs if x.device and y.device and x.device != y.device}


def _other_visits(pairs: _Pairs) -> dict[str, tuple[ItemReport, ItemReport]]:
    """By problem, results after other numbers of visits."""
    return {x.task: (x, y) for x, y in pairs if x.visits != y.visits}


def _differences(a: Campaign, b: Campaign, pairs: _Pairs) -> Iterator[str]:
    problems = len({x.task for x, _ in pairs})
    if others := _on_other_devices(pairs):
        x, y = next(iter(others.values()))
        yield (
            f"{len(others)} of {problems} problems were measured on another device, such as {x.problem}: "
            f"A on {x.device}, and B on {y.device}"
        )
    if others := _other_visits(pairs):
        x, y = next(iter(others.values()))
        yield (
            f"{len(others)} of {problems} problems had another budget after `extend`, such as {x.problem}: "
            f"A {_times(x.visits)}, and B {_times(y.visits)} that of its campaign"
        )
    for field, said in _CONDITIONS.items():
        if getattr(a, field) != getattr(b, field):
            yield f"A and B have another {said}"
    if a.name != b.name:
        yield "A and B are of two campaigns: the later one knows what the earlier one found"


def _times(number: int) -> str:
    return "once" if number == 1 else f"{number} times"


def _ratio(logs: list[float]) -> Interval | None:
    """Geometric mean of ratios from their logarithms."""
    if len(logs) < 2:
        return None
    values = np.asarray(logs)
    drawn = np.random.default_rng(0).choice(values, (_RESAMPLES, len(values))).mean(axis=1)
    low, high = np.quantile(drawn, (0.025, 0.975))
    return Interval(point=math.exp(values.mean()), low=math.exp(min(low, values.mean())), high=math.exp(high))


def _dollars(item: ItemReport) -> float | None:
    return None if item.unpriced_calls else item.dollars


def _quotient(a: list[float] | list[float | None], b: list[float] | list[float | None]) -> float | None:
    if None in a or None in b or not sum(y or 0.0 for y in b):
        return None
    return sum(x or 0.0 for x in a) / sum(y or 0.0 for y in b)
