"""A look at a campaign says what each item does or waits for, and changes nothing."""

from __future__ import annotations

import pytest
from sqlalchemy import update

from agentforge.campaigns.status import status_of
from agentforge.cli.commands.campaign_views import show_status
from agentforge.schema import LLMCall, TryOutcome
from agentforge.store import Store
from agentforge.store.tables import TryRow
from tests.store import nouns


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


@pytest.mark.parametrize(
    ("known", "said"),
    [(0.5, "at least 0.5000 dollars"), (None, "unknown dollars")],
)
def test_dollars_that_are_not_known_are_said(
    store: Store, known: float | None, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    show_status(status_of(store, "night"), as_json=False)
    out = capsys.readouterr().out
    assert "150 tokens, 0.5000 dollars" in out and "s of ended tries" in out
    call = {"run": "run-2", "role": "coder", "model": "m", "prompt": "p", "time": nouns.NOW}
    for key, status, dollars in (("k", "answered", known), ("other", "begun", 7.0)):
        found = {"key": key, "status": status, "dollars": dollars}
        store.save_call(LLMCall.model_validate({**call, **found}))
    show_status(status_of(store, "night"), as_json=False)
    assert f"tokens, {said}" in capsys.readouterr().out


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
