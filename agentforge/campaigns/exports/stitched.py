"""The solutions of verified items, which another database has if a campaign was imported."""

from __future__ import annotations

from agentforge.schema import Solution, StitchResult, UsageError
from agentforge.store import Store

from ..report import CampaignReport, ItemReport


def stitched_solution(store: Store, item: ItemReport) -> Solution | None:
    """A verified item's solution; None if it is not verified, or was imported without its solution."""
    stitched = store.get_record(item.run, StitchResult) if item.verified and item.run else None
    if stitched is None or stitched.solution is None:
        return None
    try:
        return store.get_solution(stitched.solution)
    except UsageError:
        return None


def elsewhere(store: Store, report: CampaignReport) -> tuple[str, ...]:
    """`PROBLEM (ARM)` of each verified item whose solution only the database that it came from has."""
    items = (item for item in report.items if item.verified)
    return tuple(f"{item.problem} ({item.arm})" for item in items if stitched_solution(store, item) is None)


def nothing_here(report: CampaignReport, what: str) -> str:
    """Why nothing can be written, for a message."""
    name = report.campaign.name
    if any(item.verified for item in report.items):
        return (
            f"campaign {name} was imported without its solutions: export it with --solutions where they are"
        )
    return f"campaign {name} has no verified {what} yet: see `campaign status {name}`"
