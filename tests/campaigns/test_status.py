"""A look at a campaign says what each item does or waits for, and changes nothing."""

from __future__ import annotations

from sqlalchemy import update

from agentforge.campaigns.status import status_of
from agentforge.schema import TryOutcome
from agentforge.store import Store
from agentforge.store.tables import TryRow


def test_a_look_says_what_an_item_waits_for_and_takes_it_from_no_worker(store: Store) -> None:
    item = store.take_item("night", "elsewhere:1", -1.0)  # its lease ran out while the database was away
    assert item is not None
    store.beat_item(item, -1.0, "waiting for another process that measures")
    (running,) = status_of(store, "night").running
    assert (running.id, running.words) == (item.id, "waiting for another process that measures")
    assert not running.abandoned
    assert store.end_item(item, TryOutcome.RELEASED, "there is no route to anthropic")
    status = status_of(store, "night")
    assert [(i.id, i.reason) for i in status.given_back] == [(item.id, "there is no route to anthropic")]
    assert status.running == ()


def test_a_worker_without_heartbeats_is_not_counted_on(store: Store) -> None:
    item = store.take_item("night", "elsewhere:1", 60.0)
    assert item is not None
    assert status_of(store, "night").seconds_left is not None
    with store._db.write() as session:
        session.execute(update(TryRow).where(TryRow.item == item.id).values(beat=TryRow.beat - 95))
    status = status_of(store, "night")
    assert status.running[0].abandoned
    assert 95 <= status.running[0].silent_s < 155
    assert status.seconds_left is None
