"""Events: every kind is stored and read back as its model, and no stored line makes a stream unreadable."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from pydantic import ValidationError

from agentforge.schema import (
    EVENTS,
    AttemptEvaluated,
    AttemptFailed,
    Budget,
    Event,
    Interval,
    Level,
    ModelPlan,
    ProfiledBottleneck,
    RegionPlan,
    RunStarted,
    UnknownEvent,
    event_from_json,
    event_to_json,
)

VALUES: dict[str, Any] = {
    "plan": ModelPlan(regions=(RegionPlan(bottleneck="b", name="norm", fuse=True),)),
    "budget": Budget(minutes=1.0),
    "bottlenecks": (
        ProfiledBottleneck(hash="b", name="norm", share=0.5, time_s=1.0, sol_s=0.1, optimizable=True),
    ),
    "level": "full",
    "status": "PASSED",
    "evidence": "verified",
    "speedup": {"eager": Interval(point=2.0, low=1.9, high=2.1)},
    "left": {"minutes": 1.0, "dollars": None},
    "number": 3,
    "total_s": float("inf"),
    "expected_speedup": 1.5,
    "time_s": 0.5,
    "time_before_s": 1.0,
}


def example(model: type[Event]) -> Event:
    needed = {n: VALUES.get(n, "text") for n, f in model.model_fields.items() if f.is_required()}
    given = {n: v for n, v in VALUES.items() if n in model.model_fields}
    return model.model_validate({**needed, **given, "seq": 7, "run": "r"})


@pytest.mark.parametrize("model", EVENTS, ids=lambda m: m.model_fields["kind"].default)
def test_it_is_stored_and_read_back(model: type[Event]) -> None:
    event = example(model)
    text = event_to_json(event)
    assert set(json.loads(text)) == {"seq", "run", "time", "kind", "data"}
    assert event_from_json(text) == event
    assert type(event_from_json(text)) is model


def test_every_kind_has_one_model_with_a_docstring_and_documented_fields() -> None:
    kinds = [model.model_fields["kind"].default for model in EVENTS]
    assert len(set(kinds)) == len(kinds) == 33
    assert all(model.__doc__ for model in EVENTS)
    assert EVENTS[0].model_fields["device"].description == "Name of the device."


def line(kind: str, data: dict[str, Any]) -> str:
    return json.dumps({"seq": 2, "run": "r", "time": "2026-01-02T03:04:05Z", "kind": kind, "data": data})


def test_an_old_line_with_more_fields_is_read() -> None:
    """Until version 0.1 the event of a run's start held the run's identifier and its settings too."""
    data = {"run": "r", "target": "llama", "device": "cpu", "settings": {"search": {}}, "out": None}
    event = event_from_json(line("run.started", data))
    assert isinstance(event, RunStarted)
    assert (event.seq, event.run, event.target) == (2, "r", "llama")
    assert event.time == datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


@pytest.mark.parametrize(
    ("kind", "data"),
    [
        ("kernel.given", {"kernels": []}),
        ("something.new", {"any": ["thing"], "kind": "nested", "seq": "not a number"}),
        ("attempt.evaluated", {"attempt": "r/1", "number": 1, "bottleneck": "b", "level": "of another time"}),
        ("attempt.failed", {"number": "one"}),
    ],
)
def test_a_line_that_no_model_fits_stays_readable(kind: str, data: dict[str, Any]) -> None:
    event = event_from_json(line(kind, data))
    assert isinstance(event, UnknownEvent)
    assert (event.kind, event.data, event.seq) == (kind, data, 2)
    assert event_from_json(event_to_json(event)) == event


def test_a_wrong_value_is_refused_when_an_event_is_made() -> None:
    which: dict[str, Any] = {"attempt": "r/1", "number": 1, "bottleneck": "b"}
    with pytest.raises(ValidationError, match="status"):
        AttemptEvaluated(**which, level=Level.QUICK, status="FINE", evidence="verified")  # type: ignore[arg-type]
    with pytest.raises(ValidationError, match="error"):
        AttemptFailed(**which)  # type: ignore[call-arg]
