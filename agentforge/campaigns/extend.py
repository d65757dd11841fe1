"""More visits for the items of a campaign that promise most, from what the store has of each."""

from __future__ import annotations

import math
from collections import Counter

from agentforge.schema import FrozenModel, ItemState, UsageError
from agentforge.store import Store

from .allocator import Objective, Past, Prices, Visit, allocate
from .report import ItemReport, build_report

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
    dollars: float


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

    Only items that are done take part: the others have their own commands. Until a visit ends, reports have
    the result of the one before.

    Args:
        seconds: of wall time for all visits.
        dollars: for all of them.

    Raises:
        UsageError: there is no such campaign or objective, an item still waits, or there is no limit.
    """
    aim = Objective(objective)
    if not (0 < seconds < math.inf or 0 < dollars < math.inf):
        raise UsageError("say how much the visits may take: --minutes, --dollars or both, above 0")
    report = build_report(store, name)
    if not report.finished:
        left = [f"{item.problem} ({item.arm}, {item.state})" for item in report.items if not item.state.over]
        more = f" and {len(left) - _NAMED} more" if len(left) > _NAMED else ""
        raise UsageError(
            f"campaign {name} has items left: {', '.join(left[:_NAMED])}{more}: run "
            f"`agentforge campaign resume {name}` first"
        )
    measured, rows = store.campaign_device_seconds(name), store.campaign_items(name)
    found = {(item.problem, item.arm): item for item in report.items if not item.weak}
    visits = allocate(
        [
            _past(found[row.problem, row.arm], row.id, row.visits, measured.get(row.id, 0.0))
            for row in rows
            if row.state is ItemState.DONE and (row.problem, row.arm) in found
        ],
        aim,
        prices,
        seconds=seconds,
        dollars=dollars,
    )
    store.extend_items(name, Counter(visit.item for visit in visits))
    return Extension(
        campaign=name,
        objective=aim.name,
        visits=visits,
        seconds=sum(visit.seconds for visit in visits),
        dollars=sum(visit.dollars for visit in visits),
    )


def _past(item: ItemReport, number: int, visits: int, device_s: float) -> Past:
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
        device_seconds=device_s,
        dollars=item.dollars or 0.0,
    )
