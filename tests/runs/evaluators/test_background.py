"""Work in the background is waited for when its result is needed, and not before."""

from __future__ import annotations

import time
from pathlib import Path
from threading import Event
from types import SimpleNamespace
from typing import Any

import psutil
import pytest

from agentforge.config import RefereeSettings
from agentforge.devices import DeviceSpec, detect
from agentforge.referee import Builder, EvaluationRequest
from agentforge.runs.evaluators.background import Background, LazyReferee
from agentforge.schema import Definition, HarnessError, Level

NULL = DeviceSpec(kind="null", name="null device", architecture="null")
START = Event()
"""Set when the processes of `Opened` may start."""


class Opened:
    """Takes the referee's place; remembers what it was asked."""

    asked: list[str]
    broken = False
    """Whether its processes do not start."""

    def __init__(self, settings: RefereeSettings, **_: Any) -> None:
        self.settings = settings.model_copy()  # as the real one does on a device
        self.asked = ["constructed"]
        self.waits: list[bool] = []
        """Whether each evaluation at level quick would wait for torch.compile."""

    def __enter__(self) -> Opened:
        self.asked.append("opened")
        return self

    def evaluate(self, *_: Any, **__: Any) -> str:
        self.asked.append("evaluated")
        self.waits.append(self.settings.quick_compile)
        return "verdict"

    def build(self, solution: Any) -> None:
        self.asked.append(f"built {solution}")

    def servers(self) -> tuple[Any, ...]:
        return (SimpleNamespace(ready=self._start),)

    def _start(self) -> None:
        START.wait(60)
        self.asked.append("started")
        if self.broken:
            raise HarnessError("no process")

    def close(self) -> None:
        self.asked.append("closed")


@pytest.fixture
def opens(monkeypatch: pytest.MonkeyPatch) -> Event:
    """Set when the referee may open."""
    event, really = Event(), LazyReferee._open

    def later(referee: LazyReferee, ahead: bool) -> Any:
        event.wait(60)
        return really(referee, ahead)

    monkeypatch.setattr(LazyReferee, "_open", later)
    monkeypatch.setattr("agentforge.runs.evaluators.early_referee.EarlyReferee", Opened)
    return event


def lazy(folder: Path, *, ahead: bool = False, **options: Any) -> LazyReferee:
    referee = LazyReferee(RefereeSettings(**options), device=NULL, cache=folder)
    referee.open([asked("rope", Level.FULL).definition.hash], ahead=ahead)
    return referee


def opened(referee: LazyReferee) -> Any:
    assert referee._opening is not None
    return referee._opening.result()


def asked(op_type: str, level: Level) -> Any:
    definition = Definition(name=op_type, op_type=op_type, reference="class Model: ...")
    return EvaluationRequest(definition, [], None, level)  # type: ignore[arg-type]


def test_a_result_is_waited_for_and_an_error_is_raised_there() -> None:
    go = Event()
    call = Background(lambda: go.wait(60) and "done")
    go.set()
    assert call.result() == "done"

    def fail() -> None:
        raise ValueError("no")

    failing = Background(fail)
    with pytest.raises(ValueError, match="no"):
        failing.result()


def test_the_first_evaluation_waits_for_the_referee(opens: Event, tmp_path: Path) -> None:
    referee: Any = lazy(tmp_path)
    assert isinstance(referee, Builder)
    verdict = Background(lambda: referee.evaluate(asked("model", Level.QUICK)))
    assert not verdict._outcome.done(), "nothing is open yet"
    opens.set()
    assert verdict.result() == "verdict"
    referee.build("it")
    real = opened(referee)
    referee.close()
    assert real.asked == ["constructed", "opened", "evaluated", "built it", "closed"]


def test_closed_before_it_was_opened_it_never_opens(opens: Event, tmp_path: Path) -> None:
    referee = lazy(tmp_path)
    referee.close()
    opens.set()
    with pytest.raises(HarnessError, match="closed"):
        opened(referee)
    assert referee._referee is None


@pytest.mark.parametrize(
    ("wanted", "waits"), [(True, [False, False, False, True, False, True, True]), (False, [False] * 7)]
)
def test_a_region_waits_for_torch_compile_once_a_solution_had_a_full_verdict(
    opens: Event, tmp_path: Path, wanted: bool, waits: list[bool]
) -> None:
    opens.set()
    referee = lazy(tmp_path, quick_compile=wanted)
    for op_type, level in (
        ("norm", Level.QUICK),
        ("norm", Level.QUICK),
        ("norm", Level.FULL),
        ("norm", Level.QUICK),
        ("softmax", Level.QUICK),
        ("rope", Level.QUICK),
        ("model", Level.QUICK),
    ):
        referee.evaluate(asked(op_type, level))
    real = opened(referee)
    referee.close()
    assert real.waits == waits


def test_the_first_question_opens_a_referee_that_was_not(opens: Event, tmp_path: Path) -> None:
    opens.set()
    referee = LazyReferee(RefereeSettings(), device=NULL, cache=tmp_path)
    referee.ready()
    assert referee._opening is None
    assert referee.evaluate(asked("norm", Level.QUICK)) == "verdict"  # type: ignore[comparison-overlap]
    referee.close()


@pytest.mark.parametrize("broken", [False, True])
def test_no_question_is_answered_beside_processes_that_start(
    opens: Event, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broken: bool
) -> None:
    monkeypatch.setattr(Opened, "broken", broken)
    opens.set()
    START.clear()
    referee = lazy(tmp_path, ahead=True)
    verdict = Background(lambda: referee.evaluate(asked("norm", Level.QUICK)))
    waiting = Background(referee.ready)
    real = opened(referee)
    time.sleep(0.1)
    assert not verdict._outcome.done() and not waiting._outcome.done()
    START.set()
    assert (verdict.result(), waiting.result()) == ("verdict", None)  # type: ignore[comparison-overlap]
    referee.close()
    assert real.asked == ["constructed", "opened", "started", "evaluated", "closed"]


def test_no_process_starts_ahead_unless_that_is_wanted(opens: Event, tmp_path: Path) -> None:
    opens.set()
    START.set()
    referee = lazy(tmp_path)
    referee.open(ahead=True)  # too late
    referee.ready()
    real = opened(referee)
    referee.close()
    assert real.asked == ["constructed", "opened", "closed"]


def test_what_keeps_a_referee_from_opening_is_said_by_the_first_question(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "nowhere"))
    referee = LazyReferee(RefereeSettings(), device=detect("cpu"), cache=tmp_path)
    referee.open(ahead=True)
    referee.ready()
    for _ in range(2):
        with pytest.raises(HarnessError, match="the referee cannot start"):
            referee.evaluate(asked("norm", Level.QUICK))
    referee.close()


def below(others: set[int]) -> list[psutil.Process]:
    """Living processes below this one, except these."""
    found = psutil.Process().children(recursive=True)
    return [p for p in found if p.pid not in others and p.status() != psutil.STATUS_ZOMBIE]


@pytest.mark.slow
@pytest.mark.parametrize("compiles", [True, False])
def test_a_referee_that_is_ready_has_all_processes_that_a_verdict_forks_from(
    tmp_path: Path, compiles: bool
) -> None:
    others = {child.pid for child in psutil.Process().children(recursive=True)}
    settings = RefereeSettings(compile_baseline=compiles, threads=1)
    referee = LazyReferee(settings, device=detect("cpu"), cache=tmp_path)
    referee.open(ahead=True)
    referee.ready()
    names, folder = {p.name() for p in below(others)}, opened(referee)._folder
    assert folder.is_dir()
    referee.close()
    compilers = {"compiler", "compiled-baseline"[:15]} if compiles else set()
    assert names == {"torch", "builder", "baseline", "candidate"} | compilers
    assert not below(others)
    assert not folder.exists()


@pytest.mark.slow
@pytest.mark.parametrize("seconds", [0.0, 0.5, 3.0])
def test_a_referee_that_is_closed_while_it_starts_leaves_nothing(tmp_path: Path, seconds: float) -> None:
    others = {child.pid for child in psutil.Process().children(recursive=True)}
    referee = LazyReferee(RefereeSettings(threads=1), device=detect("cpu"), cache=tmp_path)
    referee.open(ahead=True)
    folder = opened(referee)._folder
    time.sleep(seconds)
    begin = time.monotonic()
    referee.close()
    assert time.monotonic() - begin < 2.0
    referee.ready()
    assert not folder.exists()
    assert not below(others)
