"""How far a campaign is, for a person or a program."""

from __future__ import annotations

from agentforge.schema import Campaign, CampaignItem, FrozenModel, ItemState
from agentforge.store import Store


class CampaignStatus(FrozenModel):
    """A campaign, its items by state, and the rest in time and money."""

    campaign: Campaign
    states: dict[ItemState, int]
    running: tuple[CampaignItem, ...]
    stopped: tuple[CampaignItem, ...]
    """Failed, quarantined or unsupported, with the reason."""
    seconds_left: float | None
    """Estimate from the items that ended and the workers of now; None if there are none of both."""
    seconds: float
    """Wall time of all tries."""
    dollars: float
    """Known cost of all calls to language models."""
    tokens: int
    device_seconds: float
    """Wall time of all verdicts: builds, checks and timing."""

    @property
    def finished(self) -> bool:
        """Whether no item is left."""
        return all(state.over for state, count in self.states.items() if count)


def status_of(store: Store, name: str) -> CampaignStatus:
    """Read it from the database.

    Raises:
        UsageError: there is no such campaign.
    """
    campaign = store.get_campaign(name)
    store.reap_items(name)
    items, progress = store.campaign_items(name), store.campaign_progress(name)
    running = tuple(item for item in items if item.state is ItemState.RUNNING)
    left, workers = progress.items - progress.over, len({item.worker for item in running})
    tokens, dollars = store.campaign_spending(name)
    return CampaignStatus(
        campaign=campaign,
        states=progress.states,
        running=running,
        stopped=tuple(i for i in items if i.state.over and i.state is not ItemState.DONE),
        seconds_left=progress.seconds * left / workers if workers and progress.seconds else None,
        seconds=sum(item.seconds for item in items),
        dollars=dollars,
        tokens=tokens,
        device_seconds=sum(store.campaign_device_seconds(name).values()),
    )
