"""The ledger's rows, and a database of the time before them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

from sqlalchemy import create_engine, inspect

import agentforge.store
from agentforge.schema import LLMCall
from agentforge.store import Store
from agentforge.store._migrate import VERSION_TABLE
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


def test_a_database_of_the_first_version_is_upgraded(tmp_path: Path) -> None:
    from alembic import command
    from alembic.config import Config

    url = f"sqlite:///{tmp_path / 'old.db'}"
    config = Config()
    config.set_main_option("script_location", str(Path(agentforge.store.__file__).parent / "migrations"))
    engine = create_engine(url)
    with engine.begin() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, "0001")
    assert {VERSION_TABLE, "runs"} <= set(inspect(engine).get_table_names())
    assert "llm_calls" not in inspect(engine).get_table_names()
    engine.dispose()
    with Store(url) as store:
        store.create_run(make_run())
        store.save_call(call("a"))
        assert len(store.calls("run")) == 1
