"""What is begun early is waited for when it is needed, and not before."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from agentforge.campaigns import meanwhile
from agentforge.campaigns.meanwhile import Meanwhile, ReadyReferee
from agentforge.config import RefereeSettings
from agentforge.devices import DeviceSpec
from agentforge.harness import Builder
from agentforge.schema import HarnessError

NULL = DeviceSpec(kind="null", name="null device", architecture="null")


class Opened:
    """Stands where the referee would; remembers what it was asked."""

    asked: list[str]

    def __init__(self, *_: Any, **__: Any) -> None:
        self.asked = ["constructed"]

    def __enter__(self) -> Opened:
        self.asked.append("opened")
        return self

    def evaluate(self, *_: Any, **__: Any) -> str:
        self.asked.append("evaluated")
        return "verdict"

    def build(self, solution: Any) -> None:
        self.asked.append(f"built {solution}")

    def close(self) -> None:
        self.asked.append("closed")


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> Event:
    """Set when the baselines are compiled."""
    event = Event()
    monkeypatch.setattr(meanwhile, "warm_compiler_cache", lambda *_: event.wait(60))
    monkeypatch.setattr("agentforge.harness.referee.Referee", Opened)
    return event


def ready(folder: Path) -> ReadyReferee:
    return ReadyReferee(RefereeSettings(), device=NULL, cache=folder, definitions=[])


def test_a_result_is_waited_for_and_an_error_is_raised_there() -> None:
    go = Event()
    call = Meanwhile(lambda: go.wait(60) and "done")
    go.set()
    assert call.result() == "done"

    def fail() -> None:
        raise ValueError("no")

    failing = Meanwhile(fail)
    with pytest.raises(ValueError, match="no"):
        failing.result()


def test_the_first_evaluation_waits_for_the_baselines(compiled: Event, tmp_path: Path) -> None:
    referee: Any = ready(tmp_path)
    assert isinstance(referee, Builder)
    verdict = Meanwhile(lambda: referee.evaluate(None, [], None))
    assert not verdict._outcome.done(), "nothing is compiled yet"
    compiled.set()
    assert verdict.result() == "verdict"
    referee.build("it")
    opened = referee._opening.result()
    referee.close()
    assert opened.asked == ["constructed", "opened", "evaluated", "built it", "closed"]


def test_closed_before_it_was_opened_it_never_opens(compiled: Event, tmp_path: Path) -> None:
    referee = ready(tmp_path)
    referee.close()
    compiled.set()
    with pytest.raises(HarnessError, match="closed"):
        referee._opening.result()
    assert referee._referee is None


SLEEPS = """
import sys
import time
import subprocess
import sys
from pathlib import Path

from agentforge.campaigns.meanwhile import ReadyReferee
from agentforge.config import RefereeSettings
from agentforge.devices import DeviceSpec
from agentforge.schema import Definition

folder = Path(sys.argv[1])
touch = f"open({str(folder / 'begun')!r}, 'w').close()"
reference = f"import time\\n\\n{touch}\\ntime.sleep(3600)\\n"
definition = Definition(name="sleeps", op_type="other", reference=reference)
device = DeviceSpec(kind="null", name="null device", architecture="null")
ReadyReferee(RefereeSettings(threads=1), device=device, cache=folder, definitions=[definition])
while not (folder / "begun").exists():
    time.sleep(0.05)
"""


def test_a_run_that_fails_does_not_wait_for_the_baselines(tmp_path: Path) -> None:
    """Its error would be told, and the command stay for minutes."""
    done = subprocess.run([sys.executable, "-c", SLEEPS, str(tmp_path)], timeout=120, check=False)
    assert done.returncode == 0
