"""Records of runs: kept, replaced, and for older runs filled from their events."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from alembic import command
from alembic.config import Config
from sqlalchemy import Engine, create_engine, inspect, text

import agentforge.store
from agentforge.analysis import build_report
from agentforge.schema import (
    ArtifactReport,
    Directive,
    Directives,
    GivenKernel,
    GivenKernels,
    Intent,
    ModelPlan,
    NativeVerdict,
    Priors,
    RegionPlan,
    RunKind,
    RunSettings,
    SearchSummary,
    StitchResult,
    StoreError,
    UsageError,
)
from agentforge.store import Store
from agentforge.store._migrate import VERSION_TABLE
from agentforge.store.tables import RECORD_NAMES

from . import nouns

PLAN = ModelPlan(
    regions=(RegionPlan(bottleneck="d", name="norm", fuse=True, expected_speedup=2.0),), diagnosis="slow"
)
RECORDS = (
    RunSettings(search={"policy": "best-first"}, referee={"processes": 5}, out="made"),
    GivenKernels(kernels=(GivenKernel(strategy="given-kernel", solution="s"),)),
    Intent(text="softmax"),
    Priors(by_bottleneck={"d": 0.4}),
    PLAN,
    SearchSummary(reason="done", attempts=3, wins=1),
    StitchResult(mode="kernels", summary="1 kernel won", proven=True, calls={"d": 3}, packed=("p",)),
    ArtifactReport(data={"mode": "kernels", "kernels": [{"speedup": 1.5}]}),
    Directives(written=(Directive(id="d1", parent="plain", text="Read rows in order."),)),
    NativeVerdict(evaluation="e", accepted=False, message="mismatch found"),
)


def test_each_record_is_kept_and_replaced(store: Store) -> None:
    assert {type(record) for record in RECORDS} == set(RECORD_NAMES)
    run = nouns.run()
    store.create_run(run)
    for record in RECORDS:
        assert store.get_record(run.id, type(record)) is None
        store.save_record(run.id, record)
    assert tuple(store.get_record(run.id, type(record)) for record in RECORDS) == RECORDS
    store.save_record(run.id, Intent(text="softmax", written=True))
    assert store.get_record(run.id, Intent) == Intent(text="softmax", written=True)


def test_a_run_begins_with_all_its_records_or_does_not_exist(store: Store) -> None:
    run = nouns.run()
    with pytest.raises(StoreError):
        store.create_run(run, [PLAN, Intent(text="softmax"), PLAN])
    with pytest.raises(UsageError, match="no run"):
        store.get_run(run.id)
    store.create_run(run, RECORDS)
    assert tuple(store.get_record(run.id, type(record)) for record in RECORDS) == RECORDS


def test_no_record_without_a_run(store: Store) -> None:
    with pytest.raises(UsageError, match="no run"):
        store.save_record("nothing", PLAN)


STARTED = {
    "run": "r",
    "target": "llama",
    "device": "null",
    "settings": {"search": {"policy": "beam"}, "referee": {"processes": 5}, "llm": {}},
    "out": "made",
}
SEARCHED = [
    ("run.started", STARTED),
    ("search.started", {"priors": {"d": 0.4}, "budget": {}}),
    ("model.planned", {"plan": PLAN.model_dump(mode="json")}),
    ("run.resumed", {**STARTED, "settings": {"search": {"policy": "other"}}}),
    ("search.done", {"reason": "interrupted", "attempts": 1, "wins": 0}),
    ("search.done", {"reason": "done", "attempts": 3, "wins": 1}),
    ("stitch.done", {"mode": "eager", "summary": "first", "chosen": {}, "evaluation": None}),
    (
        "stitch.done",
        {
            "mode": "kernels",
            "summary": "1 kernel won",
            "proven": True,
            "chosen": {"d": "s"},
            "artifact": "made",
            "solution": "s",
            "evaluation": None,
            "calls": {"d": 3},
            "packed": ["p"],
            "notes": ["x stays: y"],
        },
    ),
]
KERNELS = [{"strategy": "given-kernel", "why": "the user's", "solution": "s"}]
OLD: dict[str, list[tuple[str, dict[str, object]]]] = {
    "model": SEARCHED,
    "kernel": [("kernel.given", {"kernels": KERNELS}), ("run.started", STARTED)],
    "sequential": [("kernel.given", {"kernels": [{**KERNELS[0], "strategy": "parallel-loops"}]})],
    "intent": [("intent.given", {"intent": "softmax"}), ("intent.written", {"reference": "..."})],
    "asked": [("intent.given", {"intent": "gelu"})],
    "mcp": [("run.started", {**STARTED, "out": None})],
    "empty": [],
}
"""Runs by identifier, with the events that the version before the records wrote."""


def old_database(url: str) -> None:
    """As migration 0004 left it, with the rows that its version wrote."""
    config = Config()
    config.set_main_option("script_location", str(Path(agentforge.store.__file__).parent / "migrations"))
    engine = create_engine(url)
    with engine.begin() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, "0004")
    for name, events in OLD.items():
        _insert_run(engine, name, events)
    with engine.begin() as connection:
        attempt = {"id": "mcp/1", "run": "mcp", "bottleneck": "d", "number": 1,
                   "plan": {"strategy": "tile", "author": "mcp:claude"}}  # fmt: skip
        connection.execute(
            text("INSERT INTO attempts VALUES ('mcp/1', 'mcp', 'd', 1, 'planned', :body)"),
            {"body": json.dumps(attempt)},
        )
    engine.dispose()


def _insert_run(engine: Engine, name: str, events: list[tuple[str, dict[str, object]]]) -> None:
    body = nouns.run(name).model_dump(mode="json", exclude={"kind"})
    body["budget"] = {"minutes": 5.0, "attempts": None, "dollars": "Infinity", "tokens": None}
    with engine.begin() as connection:
        connection.execute(
            text("INSERT INTO runs VALUES (:id, 't', 'created', :time, :body)"),
            {"id": name, "time": nouns.NOW, "body": json.dumps(body)},
        )
        for seq, (kind, data) in enumerate(events, 1):
            line = {"seq": seq, "run": name, "time": nouns.NOW.isoformat(), "kind": kind, "data": data}
            connection.execute(
                text("INSERT INTO events VALUES (:run, :seq, :kind, :time, :body)"),
                {"run": name, "seq": seq, "kind": kind, "time": nouns.NOW, "body": json.dumps(line)},
            )


def test_an_old_database_gets_kinds_and_records_from_its_events(url: str) -> None:
    if url.startswith("sqlite"):
        Path(url.removeprefix("sqlite:///")).parent.mkdir()
    old_database(url)
    with Store(url) as store:
        kinds = {run.id: run.kind for run in store.list_runs()}
        assert kinds == {
            "model": RunKind.MODEL,
            "kernel": RunKind.KERNEL,
            "sequential": RunKind.SEQUENTIAL,
            "intent": RunKind.INTENT,
            "asked": RunKind.INTENT,
            "mcp": RunKind.EXTERNAL,
            "empty": RunKind.MODEL,
        }
        assert store.get_run("model").budget.dollars is None, "no limit, as an infinite one was"
        settings = store.get_record("model", RunSettings)
        assert settings == RunSettings(search={"policy": "beam"}, referee={"processes": 5}, out="made")
        assert store.get_record("model", Priors) == Priors(by_bottleneck={"d": 0.4})
        assert store.get_record("model", ModelPlan) == PLAN
        assert store.get_record("model", SearchSummary) == SearchSummary(reason="done", attempts=3, wins=1)
        stitched = store.get_record("model", StitchResult)
        assert stitched is not None
        assert (stitched.summary, stitched.calls, stitched.packed) == ("1 kernel won", {"d": 3}, ("p",))
        kernels = GivenKernels(kernels=(GivenKernel.model_validate(KERNELS[0]),))
        assert store.get_record("kernel", GivenKernels) == kernels
        assert store.get_record("intent", Intent) == Intent(text="softmax", written=True)
        assert store.get_record("asked", Intent) == Intent(text="gelu")
        report = build_report(store, "model")
        assert (report.headline, report.stopped, report.plan) == ("1 kernel won", "done", PLAN)
        assert build_report(store, "empty").headline.startswith("Not finished")


def test_going_back_leaves_runs_that_the_older_version_reads(sqlite_url: str) -> None:
    Path(sqlite_url.removeprefix("sqlite:///")).parent.mkdir()
    old_database(sqlite_url)
    Store(sqlite_url).close()
    config = Config()
    config.set_main_option("script_location", str(Path(agentforge.store.__file__).parent / "migrations"))
    engine = create_engine(sqlite_url)
    with engine.begin() as connection:
        config.attributes["connection"] = connection
        command.downgrade(config, "0004")
    with engine.connect() as connection:
        assert "run_records" not in inspect(connection).get_table_names()
        assert connection.scalar(text(f"SELECT version_num FROM {VERSION_TABLE}")) == "0004"
        bodies = connection.scalars(text("SELECT body FROM runs")).all()
    assert bodies
    assert all("kind" not in json.loads(body) for body in bodies)
    engine.dispose()
