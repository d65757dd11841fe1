"""More visits for the items of a campaign that promise most, and for those that failed."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable

from agentforge.schema import (
    Campaign,
    CampaignItem,
    FrozenModel,
    Interval,
    ItemState,
    SearchSummary,
    UsageError,
)
from agentforge.store import Store

from .allocator import Objective, Past, Prices, Visit, allocate
from .report import ItemReport, build_report
from .start import check_positive, check_served

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

    Only items that are done take part: the others have their own commands. An item of the playbook is left
    out if its search had nothing left to try. Unless the objective is `speedup`, a workload is left out if
    another one of its definition has failed: the definition cannot count. Reports keep the result of the
    visits before, unless a run begins anew elsewhere and its result is verified and at least as fast.

    Args:
        seconds: wall time of all visits, as expected from the earlier ones.
        dollars: the most that all of them can cost. A visit may spend its share of the campaign's dollars,
            and what the earlier ones left of theirs.

    Raises:
        UsageError: there is no such campaign or objective, an item still waits, there is no limit, dollars
            cannot be limited, a price is infinite, or the campaign was imported without texts, or without
            who serves a model.
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
            f"`agentforge campaign resume {name}{store.options}` first"
        )
    shares = _shares(report.campaign)
    if dollars < math.inf and math.inf in shares.values():
        raise UsageError(
            f"campaign {name} was started without --dollars, so a visit with a language model can cost any "
            "amount: leave out --dollars and give --minutes, or start a campaign with --dollars"
        )
    lost = {(i.task, i.arm) for i in report.items if i.weak or i.state is not ItemState.DONE}
    found = {
        (item.problem, item.arm): item
        for item in report.items
        if not item.weak and not (aim.needs_all and (item.task, item.arm) in lost)
    }
    paid = {arm.name for arm in report.campaign.arms if arm.paid}
    visits = allocate(
        [
            _past(store, found[row.problem, row.arm], row, shares[row.arm])
            for row in store.campaign_items(name)
            if row.state is ItemState.DONE
            and (row.problem, row.arm) in found
            and (row.arm in paid or not _exhausted(store, row))
        ],
        aim,
        prices,
        seconds=seconds,
        dollars=dollars,
    )
    _check_texts(store, report.campaign, {visit.problem for visit in visits})
    check_served(report.campaign, (visit.arm for visit in visits))
    store.extend_items(name, Counter(visit.item for visit in visits))
    return Extension(
        campaign=name,
        objective=aim.name,
        visits=visits,
        seconds=sum(visit.seconds for visit in visits),
        dollars=_total(visit.dollars for visit in visits),
        most_dollars=_total(visit.most_dollars for visit in visits),
    )


def retry(
    store: Store, name: str, states: tuple[ItemState, ...], *, limit_minutes: float | None = None
) -> int:
    """Put the items in these states back into the queue; returns how many.

    They begin anew, except that an item which was out of time continues its run on its machine.

    Args:
        limit_minutes: wall time of an item from now on; None keeps the campaign's.

    Raises:
        UsageError: there is no such campaign, it was imported without texts or without who serves a model,
            or the limit is none.
    """
    campaign = store.get_campaign(name)
    if limit_minutes is not None:
        check_positive("--limit-minutes", limit_minutes)
    wanted = [item for item in store.campaign_items(name) if item.state in states]
    _check_texts(store, campaign, {item.problem for item in wanted})
    check_served(campaign, (item.arm for item in wanted))
    if limit_minutes is not None:
        store.set_campaign_limit(name, 60 * limit_minutes)
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
            f"`agentforge campaign import FILE --suite SUITE{store.options}` first"
        )


def _total(prices: Iterable[float | None]) -> float | None:
    """The sum; None if one of them is unknown."""
    found = list(prices)
    return None if None in found else sum(price or 0.0 for price in found)


def _shares(campaign: Campaign) -> dict[str, float]:
    """Dollars that each visit may spend, by arm; infinite without a limit."""
    limit = math.inf if campaign.budget.dollars is None else campaign.budget.dollars
    return {arm.name: limit if arm.paid else 0.0 for arm in campaign.arms}


def _exhausted(store: Store, row: CampaignItem) -> bool:
    """Whether the last search of an item had nothing left to try."""
    run = row.run or row.result_run
    found = store.get_record(run, SearchSummary) if run else None
    return found is not None and found.nothing_left


def _limit(store: Store, item: ItemReport, speedup: Interval | None) -> float:
    """Log speedup at the speed of light: of a solution over the fastest baseline, else over the profile's
    time, which may be slower than that baseline. Infinite if it is not known."""
    time_s = item.latency_s * speedup.point if speedup and item.latency_s else None
    if time_s is None and item.run:
        profile = store.get_profile(item.run)
        time_s = profile.total_s / item.workloads if profile else None
    return math.log(time_s / item.sol_s) if time_s and item.sol_s else math.inf


def _past(store: Store, item: ItemReport, row: CampaignItem, share: float) -> Past:
    """What the report says of an item, for the allocator."""
    visits = row.visits
    speedup = item.speedup.get(item.best_baseline) if item.verified else None
    limit = _limit(store, item, speedup)
    return Past(
        item=row.id,
        problem=item.problem,
        arm=item.arm,
        visits=visits,
        best=min(limit, math.log(speedup.point)) if speedup else None,
        limit=limit,
        seconds=item.seconds,
        device_seconds=item.device_seconds,
        dollars=None if item.unpriced_calls else item.dollars,
        most_dollars=max(0.0, share * (visits + 1) - (item.dollars or 0.0)),
        share=share,
    )
