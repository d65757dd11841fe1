"""More visits for the items of a campaign that promise most, and for those that failed."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection

from agentforge.schema import Campaign, FrozenModel, ItemState, UsageError
from agentforge.store import Store

from .allocator import Objective, Past, Prices, Visit, allocate
from .report import ItemReport, build_report, total

_NAMED = 5
"""Most items that a message names."""


class Extension(FrozenModel):
    """What the campaign's next visits are."""

    campaign: str
    objective: str
    visits: tuple[Visit, ...]
    """Best first."""
    seconds: float
    """Wall time of all of them, as expected."""
    dollars: float | None
    """Cost of language models, as expected; None if a price is unknown."""
    most_dollars: float | None
    """The most that language models can cost; None if the campaign does not limit it."""


def extend(
    store: Store,
    name: str,
    objective: str,
    *,
    seconds: float = math.inf,
    dollars: float = math.inf,
    prices: Prices = Prices(),
) -> Extension:
    """Put the items that promise most back into the queue, with the budget once more for each visit.

    Only items that are done take part: the others have their own commands. Reports keep the result of the
    visits before, unless a run begins anew elsewhere and its result is verified and at least as fast.

    Args:
        seconds: wall time of all visits, as expected from the earlier ones.
        dollars: the most that all of them can cost. A visit may spend its share of the campaign's dollars,
            and what the earlier ones left of theirs.

    Raises:
        UsageError: there is no such campaign or objective, an item still waits, there is no limit, dollars
            cannot be limited, a price is infinite, or the campaign was imported without texts.
    """
    aim = Objective(objective)
    if not (seconds > 0 and dollars > 0 and min(seconds, dollars) < math.inf):
        raise UsageError("say how much the visits may take: --minutes, --dollars or both, above 0")
    if math.inf in (prices.hour, prices.device_hour):
        raise UsageError(
            "the price of an hour is a finite number: correct --hour-dollars or --device-hour-dollars"
        )
    report = build_report(store, name)
    if not report.finished:
        left = [f"{item.problem} ({item.arm}, {item.state})" for item in report.items if not item.state.over]
        more = f" and {len(left) - _NAMED} more" if len(left) > _NAMED else ""
        raise UsageError(
            f"campaign {name} has items left: {', '.join(left[:_NAMED])}{more}: run "
            f"`agentforge campaign resume {name}` first"
        )
    shares = _shares(report.campaign)
    if dollars < math.inf and math.inf in shares.values():
        raise UsageError(
            f"campaign {name} was started without --dollars, so a visit with a language model can cost any "
            "amount: leave out --dollars and give --minutes, or start a campaign with --dollars"
        )
    found = {(item.problem, item.arm): item for item in report.items if not item.weak}
    visits = allocate(
        [
            _past(found[row.problem, row.arm], row.id, row.visits, shares[row.arm])
            for row in store.campaign_items(name)
            if row.state is ItemState.DONE and (row.problem, row.arm) in found
        ],
        aim,
        prices,
        seconds=seconds,
        dollars=dollars,
    )
    _check_texts(store, report.campaign, {visit.problem for visit in visits})
    store.extend_items(name, Counter(visit.item for visit in visits))
    return Extension(
        campaign=name,
        objective=aim.name,
        visits=visits,
        seconds=sum(visit.seconds for visit in visits),
        dollars=total(visit.dollars for visit in visits),
        most_dollars=total(visit.most_dollars for visit in visits),
    )


def retry(store: Store, name: str, states: tuple[ItemState, ...]) -> int:
    """Put the items in these states back into the queue, from the beginning; returns how many.

    Raises:
        UsageError: there is no such campaign, or it was imported without texts.
    """
    campaign = store.get_campaign(name)
    wanted = {item.problem for item in store.campaign_items(name) if item.state in states}
    _check_texts(store, campaign, wanted)
    return store.retry_items(name, states)


def _check_texts(store: Store, campaign: Campaign, wanted: Collection[str]) -> None:
    """Refuse problems that no worker can load: each would fail for good.

    Raises:
        UsageError: one of them was imported without its text.
    """
    problems = store.campaign_problems(campaign.name)
    bare = [problem.id for problem in problems if problem.id in wanted and not problem.source]
    if bare and Campaign.hash_of(problems) != campaign.problems_hash:  # else their targets are no files
        raise UsageError(
            f"campaign {campaign.name} was imported without the text of {bare[0]}: run "
            "`agentforge campaign import FILE --suite SUITE` first"
        )


def _shares(campaign: Campaign) -> dict[str, float]:
    """Dollars that each visit may spend, by arm; infinite without a limit."""
    limit = math.inf if campaign.budget.dollars is None else campaign.budget.dollars
    return {arm.name: limit if arm.paid else 0.0 for arm in campaign.arms}


def _past(item: ItemReport, number: int, visits: int, share: float) -> Past:
    """What the report says of an item, for the allocator."""
    speedup = item.speedup.get(item.best_baseline) if item.verified else None
    limit = math.inf
    if speedup and item.latency_s and item.sol_s:
        limit = math.log(item.latency_s * speedup.point / item.sol_s)
    return Past(
        item=number,
        problem=item.problem,
        arm=item.arm,
        visits=visits,
        best=min(limit, math.log(speedup.point)) if speedup else None,
        limit=limit,
        seconds=item.seconds,
        device_seconds=item.device_seconds,
        dollars=item.dollars,
        most_dollars=max(0.0, share * (visits + 1) - (item.dollars or 0.0)),
        share=share,
    )
