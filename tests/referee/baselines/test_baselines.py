"""Which compiled baselines are measured, when, and what happens to those that cannot be."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from typing import Any
from unittest import mock

import pytest
import torch

from agentforge.config import RefereeSettings, load_settings
from agentforge.devices import detect
from agentforge.referee import EvaluationRequest, Referee
from agentforge.referee.baselines.baselines import Baselines
from agentforge.referee.comparison.tolerance import derive
from agentforge.referee.workers.client import WorkerClient
from agentforge.referee.workers.device_backend import CPU, backend_for
from agentforge.referee.workers.failures import WorkerFailure
from agentforge.referee.workers.forkserver import COMPILED
from agentforge.schema import EvaluationStatus, Level, TargetError, TimeEnded, UsageError

from ..judging import WORKLOAD, judge, problem, solution_of

WITH_WEIGHTS = problem("return torch.relu(self.linear(x))", "torch.randn(40, 24)",
                       "self.linear = torch.nn.Linear(24, 24)")  # fmt: skip
WITHOUT = problem("return torch.relu(x)", "torch.randn(40, 24)")
NOT_COMPILED = problem("return torch.tanh(self.linear(x))", "torch.randn(40, 24)",
                       "self.linear = torch.nn.Linear(24, 24)")  # fmt: skip
"""Of one test alone: the compiler's cache never has its code."""


@pytest.fixture(scope="module")
def warm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Referee]:
    """One for all tests: each would import torch, and most of them the compiler."""
    settings = RefereeSettings(threads=1, task_seconds=0, random_seeds=1)
    with Referee(settings, device=detect("cpu"), cache=tmp_path_factory.mktemp("cache")) as found:
        yield found


@pytest.fixture
def referee(warm: Referee) -> Iterator[Referee]:
    """Without the baselines of the test before, and without the failures that it left."""
    yield warm
    warm.release()
    shutil.rmtree(warm._cache / "failures", ignore_errors=True)


@pytest.mark.slow
@pytest.mark.parametrize(("definition", "strong"), [(WITH_WEIGHTS, ["freezing"]), (WITHOUT, [])])
def test_a_quick_verdict_waits_for_the_default_mode_alone(
    referee: Referee, definition: Any, strong: list[str]
) -> None:
    baselines = referee.baselines(definition, [WORKLOAD])
    assert baselines.missing(Level.QUICK) == ["compile"]
    assert baselines.missing(Level.FULL) == ["compile", *strong]


@pytest.mark.slow
def test_a_quick_verdict_that_waits_for_no_compiler(
    referee: Referee, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = RefereeSettings(threads=1, task_seconds=0, random_seeds=1, quick_compile=False)
    monkeypatch.setattr(referee, "settings", settings)
    baselines = referee.baselines(WITHOUT, [WORKLOAD])
    assert baselines.missing(Level.QUICK) == []
    assert baselines.missing(Level.FULL) == ["compile"]


@pytest.mark.slow
def test_a_baseline_that_cannot_be_built_is_left_out_with_a_note(
    referee: Referee, monkeypatch: pytest.MonkeyPatch
) -> None:
    baselines = referee.baselines(WITH_WEIGHTS, [WORKLOAD])
    asked = []

    def refuse(_: Baselines, client: WorkerClient, ahead: Any = None) -> None:
        asked.append(client.name)
        raise WorkerFailure(EvaluationStatus.TIMEOUT, "its first call took more than 300 s")

    monkeypatch.setattr(Baselines, "_construct", refuse)
    baselines.start_compiled(Level.QUICK)
    assert (asked, baselines.missing(Level.QUICK)) == (["compile"], [])
    baselines.start_compiled(Level.FULL)
    assert asked == ["compile", "freezing"]
    assert set(baselines.clients) == {"eager", "control"}
    assert "torch.compile (freezing) is left out" in baselines.notes[-1]
    assert "more than 300 s" in baselines.notes[-1]


@pytest.mark.slow
def test_a_process_group_s_baselines_compile_at_once_and_end_with_it(referee: Referee) -> None:
    origin = referee.baselines(WITH_WEIGHTS, [WORKLOAD])
    fresh = referee._new_baselines(WITH_WEIGHTS, [WORKLOAD], origin)
    assert set(fresh.clients) == {"eager", "control"}
    assert set(fresh._starting.rest()) == {"compile", "freezing"}
    begin = time.monotonic()
    fresh.close()
    assert time.monotonic() - begin < 20
    assert not referee._servers[COMPILED]._workers

    another = referee._new_baselines(WITH_WEIGHTS, [WORKLOAD], origin)
    another.start_compiled(Level.FULL)
    assert set(another.clients) == {"eager", "control", "compile", "freezing"}
    assert not another.notes and not another._starting.rest()
    another.close()


@pytest.mark.slow
def test_a_baseline_that_compiles_for_too_long_is_ended(referee: Referee) -> None:
    baselines = referee.baselines(NOT_COMPILED, [WORKLOAD])
    baselines.start_compiled(Level.FULL, until=time.monotonic() + 0.2)
    assert set(baselines.clients) == {"eager", "control"}
    assert "torch.compile (freezing) is left out" in baselines.notes[-1]
    assert not referee._servers[COMPILED]._workers


def test_settings_choose_baselines() -> None:
    chosen = load_settings(["referee.baselines=max-autotune,compile,cuda-graph"]).referee
    assert CPU.compiled(chosen) == (["compile", "max-autotune"], ["cuda-graph"])
    assert CPU.compiled(chosen.model_copy(update={"compile_baseline": False})) == ([], [])
    assert CPU.compiled(RefereeSettings()) == (["compile", "freezing"], [])
    assert backend_for(detect("null")).compiled(RefereeSettings()) == (["compile"], [])
    with pytest.raises(UsageError, match="max-autotune-freezing"):
        load_settings(["referee.baselines=onnx"])


@pytest.mark.slow
def test_a_full_verdict_measures_freezing_and_names_it(
    referee: Referee, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = RefereeSettings(
        threads=1, task_seconds=0, random_seeds=1, full_blocks=4, full_seconds=0.1, patience_s=0,
        baselines=("compile", "freezing", "max-autotune-freezing", "cuda-graph"),
    )  # fmt: skip
    monkeypatch.setattr(referee, "settings", settings)
    verdict = judge(referee, WITH_WEIGHTS, level=Level.FULL)
    assert verdict.status is EvaluationStatus.PASSED, verdict.reasons
    assert verdict.performance is not None
    assert set(verdict.performance.speedup) == {"eager", "compile", "freezing", "max-autotune-freezing"}
    assert verdict.environment.notes["baselines"] == "no baseline on cpu: cuda-graph"


@pytest.mark.slow
def test_an_evaluation_ends_with_the_caller_s_time(referee: Referee, monkeypatch: pytest.MonkeyPatch) -> None:
    slow = (("return torch", "import time; time.sleep(0.5); return torch"),)
    settings = RefereeSettings(threads=1, task_seconds=0, random_seeds=9, compile_baseline=False)
    monkeypatch.setattr(referee, "settings", settings)
    referee.baselines(WITHOUT, [WORKLOAD])
    begin = time.monotonic()
    request = EvaluationRequest(WITHOUT, [WORKLOAD], solution_of(WITHOUT, *slow), deadline=begin + 1)
    with pytest.raises(TimeEnded, match="the run's time ended"):
        referee.evaluate(request)
    assert time.monotonic() - begin < 60
    assert referee._baselines is None  # no worker is used again


@pytest.mark.slow
def test_double_precision_may_err_as_single_does_in_its_units(referee: Referee) -> None:
    solving = problem("return torch.linalg.solve(x, x1)", ", ".join(["torch.randn(96, 96).double()"] * 2))
    bound = referee.baselines(solving, [WORKLOAD]).prepared[0].bounds[0]
    least = derive(torch.ones(1).double(), None, solving.tolerance, 96.0).relative
    assert 2 * least < bound.relative < 1e-10
    assert bound.reference_error > 0


@pytest.mark.slow
def test_workers_that_die_in_a_later_group_are_not_the_reference_s_fault(referee: Referee) -> None:
    origin = referee.baselines(WITHOUT, [WORKLOAD])

    def dying(name: str, ahead: bool) -> WorkerClient:
        client = referee._spawn(WITHOUT.hash, "eager", ahead)  # no server of the compiler has to start
        client.name = name
        client.worker.end()
        return client

    with pytest.raises(TargetError, match="does not run"):
        Baselines(WITHOUT, [WORKLOAD], referee.settings, dying)
    with pytest.raises(WorkerFailure) as told:
        Baselines(WITHOUT, [WORKLOAD], referee.settings, dying, origin=origin)
    assert told.value.worker == "eager"


@pytest.mark.slow
def test_a_worker_that_compiles_ahead_calls_the_first_workload(referee: Referee) -> None:
    """Its `get_inputs` may have no default."""
    listed = WITHOUT.reference.replace("get_inputs()", "get_inputs(workload)") + "\nworkloads = ['a', 'b']"
    listed = listed.replace("randn(40", "randn({'a': 40, 'b': 20}[workload]")
    definition = WITHOUT.model_copy(update={"reference": listed})
    keyed = [WORKLOAD.model_copy(update={"name": key, "key": key}) for key in ("a", "b")]
    baselines = referee.baselines(definition, keyed)
    client = referee._spawn(definition.hash, "eager", False)  # no server of the compiler has to start
    try:
        baselines._construct(client, baselines.prepared[0].inputs.arguments.encoded)
    finally:
        client.close()


def test_a_reference_whose_output_cannot_be_compared_says_why(referee: Referee) -> None:
    unsigned = problem("return x.to(torch.uint16)", "torch.rand(40, 24)")
    with pytest.raises(TargetError, match=r"cannot be used: out has the type torch\.uint16"):
        referee.baselines(unsigned, [WORKLOAD])


def test_a_compiled_baseline_keeps_no_shortened_limit(referee: Referee) -> None:
    baselines = referee.baselines(WITHOUT, [WORKLOAD])
    client: Any = mock.Mock(call_timeout_s=300.0)
    client.name = "compile"
    limits = []
    client.call.side_effect = lambda _: limits.append(client.call_timeout_s)
    baselines._spawn = lambda name, ahead: client
    baselines.start_compiled(Level.QUICK, until=time.monotonic() + 60)
    assert len(limits) == 2 and max(limits) <= 60
    assert baselines.clients["compile"].call_timeout_s == 300.0
