"""Delivery to trackers that work, raise, hang or leave; the JSON lines; a run with a broken tracker."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

import pytest

from agentforge.config import load_settings
from agentforge.schema import Event, Run, UsageError
from agentforge.testing.tracker import EVENTS, TrackerContract, make_run
from agentforge.trackers import Delivery, check_trackers, trackers

HERE = "tests.trackers.test_trackers"


class TestJsonLines(TrackerContract):
    name = "jsonl"

    def options(self, folder: Path) -> Mapping[str, str]:
        return {"path": str(folder / "{run}.jsonl")}

    def received(self, folder: Path) -> list[str]:
        (file,) = folder.glob("*.jsonl")
        assert file.stem == make_run().id
        return [json.loads(line)["kind"] for line in file.read_text().splitlines()]


class Memory:
    name = "memory"
    seen: ClassVar[list[str]] = []
    closed: ClassVar[list[str]] = []

    def __init__(self, run: Run) -> None:
        self.run = run

    def on_event(self, event: Event) -> None:
        self.seen.append(event.kind)

    def close(self) -> None:
        self.closed.append(self.run.id)


class NoStart(Memory):
    def __init__(self, run: Run) -> None:
        raise OSError("no server\nanswers")


class Raises(Memory):
    def on_event(self, event: Event) -> None:
        raise ValueError("bad event")


class Exits(Memory):
    def on_event(self, event: Event) -> None:
        raise SystemExit(3)


class RaisesAtTheEnd(Memory):
    def close(self) -> None:
        raise RuntimeError("half written")


class Hangs(Memory):
    release: ClassVar[threading.Event] = threading.Event()

    def on_event(self, event: Event) -> None:
        self.release.wait(30)


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch) -> None:
    for kind in (Memory, NoStart, Raises, Exits, RaisesAtTheEnd, Hangs):
        monkeypatch.setitem(trackers._builtin, kind.__name__.lower(), f"{HERE}:{kind.__name__}")
    Memory.seen.clear()
    Memory.closed.clear()


@pytest.mark.usefixtures("known")
@pytest.mark.parametrize(
    ("bad", "said"),
    [
        ("nostart", "cannot start (OSError: no server answers)"),
        ("raises", "failed (ValueError: bad event)"),
        ("exits", "failed (SystemExit: 3)"),
        ("raisesattheend", "failed at the end (RuntimeError: half written)"),
    ],
)
def test_a_tracker_that_fails_ends_only_itself(bad: str, said: str, caplog: pytest.LogCaptureFixture) -> None:
    with Delivery(make_run(), [bad, "memory"], {}) as delivery:
        for event in EVENTS:
            delivery.on_event(event)
    assert [kind for kind in Memory.seen if kind == "run.finished"]
    assert make_run().id in Memory.closed
    assert [r.getMessage() for r in caplog.records] == [f"tracker {bad!r} {said}; the run goes on without it"]


@pytest.mark.usefixtures("known")
def test_a_tracker_that_hangs_delays_nothing(caplog: pytest.LogCaptureFixture) -> None:
    began = time.monotonic()
    delivery = Delivery(make_run(), ["hangs", "memory"], {})
    for event in EVENTS:
        delivery.on_event(event)
    delivery.close(timeout_s=0.5)
    Hangs.release.set()
    assert time.monotonic() - began < 20
    assert Memory.seen == [event.kind for event in EVENTS]
    assert "tracker 'hangs' did not finish" in caplog.text


@pytest.mark.usefixtures("known")
def test_the_view_sees_an_event_before_the_trackers() -> None:
    seen: list[str] = []
    with Delivery(make_run(), ["memory"], {}) as delivery:
        callback = delivery.after(lambda event: seen.append(event.kind))
        callback(EVENTS[0])
        delivery.after(None)(EVENTS[1])
    assert seen == [EVENTS[0].kind]
    assert Memory.seen == [EVENTS[0].kind, EVENTS[1].kind]


def test_wrong_settings_are_reported_before_a_run() -> None:
    check_trackers((), {})
    with pytest.raises(UsageError, match=r"'nothing' is not one of the trackers: .*jsonl"):
        check_trackers(["nothing"], {})
    with pytest.raises(UsageError, match=r"'jsonl' \(trackers\) has no option 'file'; its options are: path"):
        check_trackers(["jsonl"], {"jsonl": {"file": "x"}})


@pytest.mark.parametrize("text", ["jsonl, other", "[jsonl, other]"])
def test_names_are_a_list_or_have_commas(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert load_settings([f"trackers={text}"]).trackers == ("jsonl", "other")
    monkeypatch.setenv("AGENTFORGE_TRACKERS", "jsonl,other")
    monkeypatch.setenv("AGENTFORGE_TRACKER_OPTIONS__JSONL__PATH", "there")
    settings = load_settings()
    assert settings.trackers == ("jsonl", "other")
    assert settings.tracker_options == {"jsonl": {"path": "there"}}
