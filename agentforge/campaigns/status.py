"""How far a campaign is, for a person or a program."""

from __future__ import annotations

from agentforge.schema import Campaign, CampaignItem, FrozenModel, ItemState, UsageError
from agentforge.store import Store

from .worker import LEASE_S


class RunningItem(CampaignItem):
    """An item that a worker has."""

    words: str
    """What the worker said last: what the item does, or what it waits for."""
    silent_s: float
    """Seconds since the worker's last heartbeat."""

    @property
    def abandoned(self) -> bool:
        """Whether other workers take this one for dead."""
        return self.silent_s > LEASE_S


class CampaignStatus(FrozenModel):
    """A campaign, its items by state, and the rest in time and money."""

    campaign: Campaign
    states: dict[ItemState, int]
    running: tuple[RunningItem, ...]
    given_back: tuple[CampaignItem, ...]
    """Waiting again, with the reason."""
    stopped: tuple[CampaignItem, ...]
    """Failed, quarantined or unsupported, with the reason."""
    seconds_left: float | None
    """Estimate from the items that ended and the workers of now; None if there are none of both."""
    seconds: float
    """Wall time of all tries that have ended."""
    dollars: float
    """Cost of all calls to language models, as far as it is known."""
    unpriced_calls: int = 0
    """Calls whose cost is not known: the model's price is unknown, or there is no answer, or not yet."""
    tokens: int
    device_seconds: float
    """Wall time of all verdicts: builds, checks and timing."""

    @property
    def finished(self) -> bool:
        """Whether no item is left."""
        return all(state.over for state, count in self.states.items() if count)


def status_of(store: Store, name: str) -> CampaignStatus:
    """Read it from the database, which stays as it is: only workers take items from others.

    Raises:
        UsageError: there is no such campaign.
    """
    campaign = store.get_campaign(name)
    items, progress = store.campaign_items(name), store.campaign_progress(name)
    words = store.campaign_words(name)
    running = tuple(
        _running(item, *words.get(item.id, ("", 0.0)))  # it may have ended since
        for item in items
        if item.state is ItemState.RUNNING
    )
    workers = len({item.worker for item in running if not item.abandoned})
    left = progress.items - progress.over
    spent = store.campaign_spending(name)
    return CampaignStatus(
        campaign=campaign,
        states=progress.states,
        running=running,
        given_back=tuple(i for i in items if i.state is ItemState.WAITING and i.reason),
        stopped=tuple(i for i in items if i.state.over and i.state is not ItemState.DONE),
        seconds_left=progress.seconds * left / workers if workers and progress.seconds else None,
        seconds=sum(item.seconds for item in items),
        dollars=spent.dollars,
        unpriced_calls=spent.unknown,
        tokens=spent.tokens,
        device_seconds=sum(store.campaign_device_seconds(name).values()),
    )


def only_unfinished(store: Store) -> str:
    """Name of the only campaign that has items left.

    Raises:
        UsageError: none has, or several have.
    """
    names = [one.name for one in store.list_campaigns() if not store.campaign_progress(one.name).finished]
    if len(names) != 1:
        which = (
            f"has several campaigns with items left ({', '.join(names)})"
            if names
            else "has no campaign with items left"
        )
        raise UsageError(
            f"database {store.where} {which}: run `agentforge campaign work NAME -c database_url=URL`"
        )
    return names[0]


def _running(item: CampaignItem, words: str, silent_s: float) -> RunningItem:
    return RunningItem.model_validate({**item.model_dump(), "words": words, "silent_s": silent_s})
