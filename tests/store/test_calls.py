"""The ledger's rows."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from agentforge.schema import LLMCall
from agentforge.store import Store
from tests.loop.conftest import make_run

NOW = datetime(2026, 11, 21, tzinfo=UTC)


def call(key: str, **changes: object) -> LLMCall:
    fields = {
        "key": key,
        "run": "run",
        "role": "coder",
        "model": "m",
        "prompt": "p",
        "status": "begun",
        "time": NOW,
    }
    return LLMCall.model_validate({**fields, **changes})


def test_a_calls_newest_state_holds(store: Store) -> None:
    store.create_run(make_run())
    assert store.find_call("a") is None
    store.save_call(call("b", time=NOW + timedelta(seconds=1)))
    store.save_call(call("a"))
    done = call("a", status="answered", tokens_in=7, dollars=None, response='{"text": "nul \\u0000"}')
    store.save_call(done)
    assert store.find_call("a") == done
    assert [c.key for c in store.calls("run")] == ["a", "b"]
    assert store.calls("other") == ()
