"""The checkpoint file."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from agentforge.loop import graph
from agentforge.schema import StoreError

from .conftest import Bench
from .scripted import bottleneck, profile


def test_a_full_disk_is_said_and_costs_nothing(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    script = {"a": [{"speed": 1.0 + i} for i in range(1, 6)]}
    opened = graph._open

    def full(path: Path) -> sqlite3.Connection:
        connection = opened(path)
        pages = connection.execute("PRAGMA page_count").fetchone()[0]
        connection.execute(f"PRAGMA max_page_count = {pages + 8}")
        return connection

    monkeypatch.setattr(graph, "_open", full)
    with pytest.raises(StoreError, match="free some space and resume"):
        bench.search(profile(bottleneck("a")), script)
    done = len(bench.referee.evaluations)
    monkeypatch.setattr(graph, "_open", opened)
    assert bench.search(profile(bottleneck("a")), script).attempts == 5
    assert len(bench.referee.evaluations) == len(set(bench.referee.evaluations)) > done


def test_checkpoints_hold_identifiers_only(bench: Bench) -> None:
    bench.search(profile(bottleneck("a")), {"a": [{"speed": 2.0}, {"speed": 3.0}]})
    with graph.checkpoints(bench.folder / "checkpoint.db") as saver:
        state = saver.get_tuple({"configurable": {"thread_id": "run"}})
    assert state is not None
    values = state.checkpoint["channel_values"]
    assert {"round", "planless", "reason", "__pregel_tasks"} >= {k for k in values if ":" not in k}
    assert sum(len(str(value)) for value in values.values()) < 300


def test_nothing_at_all_to_do(bench: Bench) -> None:
    result = bench.search(profile(), {})
    assert (result.wins, result.attempts) == ((), 0)
