"""Baselines that failed for a reason that lasts are not tried again: not by the next run either."""

from __future__ import annotations

import math
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from agentforge.config import RefereeSettings
from agentforge.devices import detect
from agentforge.problems.failures import KnownFailures
from agentforge.referee import Referee
from agentforge.referee.baselines.baselines import Baselines
from agentforge.referee.workers.client import WorkerClient
from agentforge.referee.workers.failures import WorkerFailure
from agentforge.schema import Definition, EvaluationStatus, Level, ReasonCode, TargetError

from .judging import WORKLOAD, judge, problem

Status = EvaluationStatus
RELU = problem("return torch.relu(x)", "torch.randn(40, 24)")
HANGS = problem(
    "return torch.tanh(x)",
    "torch.randn(40, 24)",
    "sys = __import__('sys'); 'torch._inductor.compile_fx' in sys.modules and __import__('time').sleep(600)",
)
"""The worker of a compiled baseline alone has imported the compiler."""
SETTINGS = RefereeSettings(threads=1, task_seconds=0, random_seeds=1, baselines=("compile",))


@pytest.fixture(scope="module")
def warm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Referee]:
    """One for all tests: each would import torch."""
    with Referee(SETTINGS, device=detect("cpu"), cache=tmp_path_factory.mktemp("cache")) as found:
        yield found


@pytest.fixture
def referee(warm: Referee) -> Iterator[Referee]:
    """Without what the test before left."""
    yield warm
    warm.release()
    shutil.rmtree(warm._cache / "failures", ignore_errors=True)


def failing(failure: WorkerFailure, after_s: float = 0.0) -> Callable[[str, bool], Any]:
    """Spawns workers whose first call fails so."""

    def call(_: int) -> None:
        time.sleep(after_s)
        raise failure

    def spawn(name: str, _: bool) -> Any:
        client = mock.Mock(call_timeout_s=300.0, call=call)
        client.name = name
        return client

    return spawn


def fail(
    referee: Referee,
    failure: WorkerFailure,
    after_s: float = 0.0,
    until: float = math.inf,
    definition: Definition = RELU,
) -> None:
    """Let the compiled baseline fail so."""
    baselines = referee.baselines(definition, [WORKLOAD])
    baselines._spawn = failing(failure, after_s)
    baselines.start_compiled(Level.FULL, until=until)
    assert "is left out: it cannot run this" in baselines.notes[-1]


def tried(referee: Referee, definition: Definition = RELU) -> bool:
    """Whether a new run would try to compile."""
    referee.release()
    return referee.baselines(definition, [WORKLOAD]).missing(Level.FULL) == ["compile"]


@pytest.mark.slow
def test_what_lasts_is_known_and_the_rest_is_tried_again(referee: Referee) -> None:
    late = "no answer within 300 s"
    for failure, after_s, lasts in [
        (WorkerFailure(Status.CRASHED, "died of SIGSEGV"), 0.0, False),
        (WorkerFailure(Status.TIMEOUT, late, starved=True), 0.0, False),  # a busy machine
        (WorkerFailure(Status.TIMEOUT, late), 1.2, False),  # the run's own time ended first
        (WorkerFailure(Status.TIMEOUT, late), 0.0, True),
        (WorkerFailure(Status.OUT_OF_MEMORY, "its process ran out of memory"), 0.0, True),
        (WorkerFailure(Status.RUNTIME_ERROR, "InductorError: Python.h is missing"), 0.0, False),  # repairable
        (WorkerFailure(Status.COMPILE_ERROR, "SyntaxError"), 0.0, False),
    ]:
        for _ in range(2):
            assert tried(referee)
            fail(referee, failure, after_s, until=time.monotonic() + 1.0)
        assert tried(referee) is not lasts, failure
        if lasts:
            (note,) = referee.baselines(RELU, [WORKLOAD]).notes
            assert failure.reason.partition("\n")[0] in note and "known since" in note
            (file,) = (referee._cache / "failures").iterdir()
            file.unlink()
            assert tried(referee)


def test_a_larger_limit_tries_it_again(referee: Referee, monkeypatch: pytest.MonkeyPatch) -> None:
    for _ in range(2):
        assert tried(referee)
        fail(referee, WorkerFailure(Status.TIMEOUT, "no answer within 300 s"))
    assert not tried(referee)
    longer = SETTINGS.model_copy(update={"compile_timeout_s": 600.0})
    monkeypatch.setattr(referee, "settings", longer)
    assert tried(referee)


def test_a_later_process_group_does_not_try_it_either(referee: Referee) -> None:
    origin = referee.baselines(RELU, [WORKLOAD])
    origin._spawn = failing(WorkerFailure(Status.TIMEOUT, "no answer within 300 s"))
    origin.start_compiled(Level.FULL, until=time.monotonic() + 60)
    fresh = referee._new_baselines(RELU, [WORKLOAD], origin)
    assert fresh.missing(Level.FULL) == [] and fresh.notes == []
    fresh.close()


def test_what_another_run_finds_meanwhile_does_not_change_a_verdicts_baselines(
    referee: Referee, monkeypatch: pytest.MonkeyPatch
) -> None:
    origin = referee.baselines(RELU, [WORKLOAD])
    monkeypatch.setattr(Baselines, "_compile_beside", lambda *_: None)  # no compiler has to start
    monkeypatch.setattr(KnownFailures, "find", lambda *_: "its process ran out of memory")
    later = referee._new_baselines(RELU, [WORKLOAD], origin)
    assert later.missing(Level.FULL) == ["compile"] and later.notes == []
    later.close()


def test_a_reference_that_runs_out_of_memory_is_not_run_again(
    referee: Referee, monkeypatch: pytest.MonkeyPatch
) -> None:
    spawned, spawn = [], referee._spawn

    def killed(definition: str, name: str, ahead: bool) -> WorkerClient:
        client = spawn(definition, name, ahead)
        client.worker.end()
        spawned.append(name)
        return client

    monkeypatch.setattr(referee, "_spawn", killed)
    out = "its process ran out of memory"
    for said in (rf"{out}\)", rf"{out}\)", f"{out}; known since"):
        with pytest.raises(TargetError, match=rf"does not run \({said}"):
            referee.baselines(RELU, [WORKLOAD])
    assert spawned == ["eager", "control"] * 2


def test_a_reference_with_files_beside_it_is_always_tried(referee: Referee, tmp_path: Path) -> None:
    beside = RELU.model_copy(update={"import_root": str(tmp_path)})
    for _ in range(2):
        assert tried(referee, beside)
        fail(referee, WorkerFailure(Status.TIMEOUT, "no answer within 300 s"), definition=beside)
    assert tried(referee, beside)


@pytest.mark.timing
@pytest.mark.slow
def test_a_compiler_that_hangs_is_waited_for_twice(tmp_path: Path) -> None:
    settings = SETTINGS.model_copy(update={"compile_timeout_s": 3.0})
    took = []
    for _ in range(3):  # three runs
        with Referee(settings, device=detect("cpu"), cache=tmp_path / "cache") as referee:
            baselines = referee.baselines(HANGS, [WORKLOAD])
            begin = time.monotonic()
            baselines.start_compiled(Level.FULL)
            took.append(time.monotonic() - begin)
            (note,) = baselines.notes
            assert "torch.compile is left out: it cannot run this (no answer within 3 s" in note
    assert min(took[:2]) > 3 > 1 > took[2]
    assert "known since" in note


@pytest.mark.slow
@pytest.mark.parametrize("starved", [False, True])
def test_a_candidate_that_had_to_wait_for_processors_is_doubted(
    referee: Referee, monkeypatch: pytest.MonkeyPatch, starved: bool
) -> None:
    monkeypatch.setattr("agentforge.isolation.procfs.starved", lambda _: starved)
    settings = SETTINGS.model_copy(
        update={"call_timeout_s": 2.0, "build_timeout_s": 3.0, "compile_baseline": False}
    )
    monkeypatch.setattr(referee, "settings", settings)
    verdict = judge(referee, RELU, ("return torch", "import time; time.sleep(600); return torch"))
    assert verdict.status is Status.TIMEOUT
    assert verdict.codes == (ReasonCode.TIMEOUT, *([ReasonCode.STARVED] if starved else []))
