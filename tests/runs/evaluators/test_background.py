"""Work in the background is waited for when its result is needed, and not before."""

from __future__ import annotations

from pathlib import Path
from threading import Event
from typing import Any

import pytest

from agentforge.config import RefereeSettings
from agentforge.devices import DeviceSpec
from agentforge.referee import Builder, EvaluationRequest
from agentforge.runs.evaluators.background import Background, LazyReferee
from agentforge.schema import Definition, HarnessError, Level

NULL = DeviceSpec(kind="null", name="null device", architecture="null")


class Opened:
    """Takes the referee's place; remembers what it was asked."""

    asked: list[str]

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

    def close(self) -> None:
        self.asked.append("closed")


@pytest.fixture
def opens(monkeypatch: pytest.MonkeyPatch) -> Event:
    """Set when the referee may open."""
    event, really = Event(), LazyReferee._open

    def later(lazy: LazyReferee) -> Any:
        event.wait(60)
        return really(lazy)

    monkeypatch.setattr(LazyReferee, "_open", later)
    monkeypatch.setattr("agentforge.referee.referee.Referee", Opened)
    return event


def ready(folder: Path, **options: Any) -> LazyReferee:
    known = [asked("rope", Level.FULL).definition.hash]
    return LazyReferee(RefereeSettings(**options), device=NULL, cache=folder, judged_in_full=known)


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
    referee: Any = ready(tmp_path)
    assert isinstance(referee, Builder)
    verdict = Background(lambda: referee.evaluate(asked("model", Level.QUICK)))
    assert not verdict._outcome.done(), "nothing is open yet"
    opens.set()
    assert verdict.result() == "verdict"
    referee.build("it")
    opened = referee._opening.result()
    referee.close()
    assert opened.asked == ["constructed", "opened", "evaluated", "built it", "closed"]


def test_closed_before_it_was_opened_it_never_opens(opens: Event, tmp_path: Path) -> None:
    referee = ready(tmp_path)
    referee.close()
    opens.set()
    with pytest.raises(HarnessError, match="closed"):
        referee._opening.result()
    assert referee._referee is None


@pytest.mark.parametrize(
    ("wanted", "waits"), [(True, [False, False, False, True, False, True, True]), (False, [False] * 7)]
)
def test_a_region_waits_for_torch_compile_once_a_solution_had_a_full_verdict(
    opens: Event, tmp_path: Path, wanted: bool, waits: list[bool]
) -> None:
    opens.set()
    referee = ready(tmp_path, quick_compile=wanted)
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
    opened: Any = referee._opening.result()
    referee.close()
    assert opened.waits == waits
