"""What a worker takes at a time, on SQLite and on a real PostgreSQL."""

from __future__ import annotations

import time
from collections import Counter

import pytest

from agentforge.campaigns import claims as claiming
from agentforge.campaigns.claims import Claims
from agentforge.schema import CampaignItem, CampaignState, ItemState, TryOutcome
from agentforge.store import Store
from tests.store.conftest import postgres_server, postgres_url, sqlite_url, store, url
from tests.store.nouns import campaign

__all__ = ["postgres_server", "postgres_url", "sqlite_url", "store", "url"]


def claims(store: Store, worker: str = "host:1") -> Claims:
    return Claims(store, "night", worker, 600.0)


def held(store: Store) -> int:
    """Items that the queue has as running."""
    return store.campaign_progress("night").states[ItemState.RUNNING]


def work(own: Claims, seconds: float = 0.0) -> CampaignItem:
    item = own.take()
    assert item is not None
    time.sleep(seconds)
    own.done(item)
    return item


def test_short_items_are_taken_several_at_a_time(store: Store) -> None:
    store.create_campaign(*campaign(40))
    own, most, order = claims(store), 0, []
    while (item := own.take()) is not None:
        most = max(most, held(store))
        order.append(item.id)
        own.done(item)
    assert most > 4
    assert order == sorted(order)
    assert {item.state for item in store.campaign_items("night")} == {ItemState.DONE}
    assert set(Counter(tried.item for tried in store.campaign_tries("night")).values()) == {1}
    assert own.accepted == len(order) == 80


def test_long_items_are_taken_one_by_one(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claiming, "BATCH_S", 0.05)
    store.create_campaign(*campaign(3))
    own = claims(store)
    for number in range(3):
        work(own, 0.06)
        assert held(store) == 1, "the one that was just done"
        assert store.campaign_progress("night").over == number


def test_items_that_are_not_begun_can_be_given_back(store: Store) -> None:
    store.create_campaign(*campaign(20))
    own = claims(store)
    first = [work(own), work(own)]
    assert own.age_s > 0
    own.give_back()
    assert (own.age_s, own.unrecorded) == (0.0, 0)
    states = Counter(item.state for item in store.campaign_items("night"))
    assert states == {ItemState.DONE: 2, ItemState.WAITING: 38}
    outcomes = Counter(tried.outcome for tried in store.campaign_tries("night"))
    assert outcomes[TryOutcome.DONE] == 2
    assert outcomes[TryOutcome.LOST] == 0
    other = claims(store, "host:2").take()
    assert other is not None
    assert other.id == first[-1].id + 1


def test_the_queue_can_learn_what_is_done_while_the_last_item_goes_on(store: Store) -> None:
    store.create_campaign(*campaign(40))
    own = claims(store)
    while (last := own.take()) is not None and not (own.unrecorded and held(store) == own.unrecorded + 1):
        own.done(last)
    assert last is not None
    time.sleep(0.02)
    assert own.age_s > 0, "nobody renews the leases of what is done"
    own.give_back()
    assert (own.age_s, own.unrecorded, held(store)) == (0.0, 0, 1)
    own.done(last)
    own.give_back()
    ends = {tried.item: tried.ended or 0.0 for tried in store.campaign_tries("night") if tried.outcome}
    assert max(ends, key=lambda item: ends[item]) == last.id


@pytest.mark.slow
def test_a_pause_takes_effect_after_the_items_at_hand(store: Store) -> None:
    store.create_campaign(*campaign(20))
    own = claims(store)
    work(own)
    work(own)
    store.set_campaign_state("night", CampaignState.PAUSED)
    left = held(store) - 1
    for _ in range(left):
        work(own)
    assert own.take() is None
    assert store.campaign_progress("night").states[ItemState.DONE] == 2 + left
