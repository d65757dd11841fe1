"""A model of one region: one full verdict for the kernel and for the model with it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from agentforge.config import RefereeSettings
from agentforge.devices import DeviceSpec, Roofline
from agentforge.loop import RunLog
from agentforge.loop._base import SearchedBottleneck
from agentforge.loop.attempt_referee import AttemptReferee
from agentforge.profiling import profile_target
from agentforge.referee import EvaluationRequest, OnStage, Referee
from agentforge.runs.evaluators.cached import CachedEvaluator
from agentforge.runs.evaluators.inside_model import InsideModel, only_region
from agentforge.schema import (
    JUDGED,
    Attempt,
    Context,
    Evaluation,
    EvaluationStatus,
    Evidence,
    Level,
    Profile,
    Solution,
    Target,
)
from agentforge.stitch import stitch
from agentforge.store import Store
from agentforge.testing.language import make_solution
from tests.loop.conftest import make_run
from tests.steady import SteadyReferee
from tests.stitch.making import RMS_CPP, RMS_PY, target_of

pytestmark = pytest.mark.slow

NORM = """
import torch


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.rand(256) + 0.5)

    def forward(self, x):
        return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6))


def get_inputs():
    return [torch.randn(2048, 256)]


def get_init_inputs():
    return []
"""
WRONG_CPP = RMS_CPP.replace("1e-6f", "0.5f")
DEVICE = DeviceSpec(kind="cpu", name="device", architecture="x86-64", threads=2)


class Counting(SteadyReferee):
    """Counts what it is asked, by level and definition."""

    def __init__(self, referee: Referee) -> None:
        super().__init__(referee, lambda solution: 2.0)
        self.asked: list[tuple[Level, str]] = []

    def evaluate(self, request: EvaluationRequest, *, progress: OnStage | None = None) -> Evaluation:
        self.asked.append((request.level, request.definition.hash))
        return super().evaluate(request, progress=progress)


class Failing:
    """Fails a number of times, and then is the referee."""

    def __init__(self, referee: Counting, failures: int) -> None:
        self._referee = referee
        self._left = failures

    def evaluate(self, request: EvaluationRequest, *, progress: OnStage | None = None) -> Evaluation:
        found = self._referee.evaluate(request, progress=progress)
        self._left -= 1
        failed = {"status": EvaluationStatus.HARNESS_ERROR, "evidence": Evidence.UNVERIFIED}
        return found.model_copy(update=failed) if self._left >= 0 else found


@pytest.fixture(scope="module")
def target() -> Target:
    return target_of(NORM, "norm")


@pytest.fixture(scope="module")
def profile(target: Target) -> Profile:
    return profile_target(target, DEVICE, Roofline(bandwidth=2e10, peak_flops={"float32": 1e11}), traces=1)


@pytest.fixture
def referee(tmp_path: Path) -> Iterator[Counting]:
    settings = RefereeSettings(
        threads=2, quick_seconds=0.2, quick_blocks=2, compile_baseline=False, task_seconds=0
    )
    with Referee(settings, device=DEVICE, cache=tmp_path / "cache") as real:
        yield Counting(real)


@pytest.fixture
def run_log(tmp_path: Path) -> Iterator[RunLog]:
    with Store(f"sqlite:///{tmp_path / 'a.db'}") as store:
        store.create_run(make_run().model_copy(update={"device": DEVICE.name}))
        yield RunLog(store, store.get_run("run"))


def request(profile: Profile, source: str, level: Level) -> EvaluationRequest:
    region = profile.bottlenecks[0]
    files = {"model_new.py": RMS_PY, "kernel.cpp": source}
    solution: Solution = make_solution("cpp", files, definition=region.definition.hash)
    return EvaluationRequest(region.definition, region.workloads, solution, level=level)


def test_a_full_verdict_is_one_on_the_model_and_stitching_finds_it(
    target: Target, profile: Profile, referee: Counting, run_log: RunLog, tmp_path: Path
) -> None:
    region = only_region(target, profile)
    assert region == profile.bottlenecks[0].definition.hash
    lines: list[str] = []
    inside = InsideModel(referee, referee, run_log, target, profile, progress=lines.append)
    asked = request(profile, RMS_CPP, Level.QUICK)
    quick = inside.evaluate(asked)
    full = inside.evaluate(request(profile, RMS_CPP, Level.FULL))
    assert full.verified and full.definition == region and full.solution == asked.solution.hash
    assert full.workloads == tuple(w.hash for w in asked.workloads)
    assert "only region" in full.environment.notes[JUDGED] and JUDGED not in quick.environment.notes
    assert full.kernels == quick.kernels
    assert lines[-1] == "judging 1 kernel in the model"
    said: list[str] = []
    artifact = stitch(
        target,
        profile,
        {region: asked.solution},
        tmp_path / "artifact",
        referee=CachedEvaluator(referee, run_log),
        device=DEVICE,
        cache=tmp_path / "cache",
        progress=said.append,
        rewritten=inside.rewritten,
    )
    assert not any("exporting" in line for line in said)
    assert artifact.proven and artifact.mode == "kernels"
    assert referee.asked == [(Level.QUICK, region), (Level.FULL, target.definition.hash)]


def test_a_wrong_kernel_is_wrong_inside_the_model_too(
    target: Target, profile: Profile, referee: Counting, run_log: RunLog
) -> None:
    inside = InsideModel(referee, referee, run_log, target, profile)
    for source, right in ((WRONG_CPP, False), (RMS_CPP, True)):  # the model is rewritten once for both
        found = inside.evaluate(request(profile, source, Level.FULL))
        assert found.passed is right
        assert found.definition == profile.bottlenecks[0].definition.hash


@pytest.mark.parametrize("failures", [1, 9])
def test_a_referee_that_fails_inside_the_model_is_asked_once_more(
    target: Target, profile: Profile, referee: Counting, run_log: RunLog, failures: int
) -> None:
    region = profile.bottlenecks[0]
    name, solution = region.definition.hash, request(profile, RMS_CPP, Level.FULL).solution
    inside = InsideModel(referee, Failing(referee, failures), run_log, target, profile)
    attempt = Attempt(id=run_log.attempt_id(1), run="run", bottleneck=name, number=1)
    bottlenecks = {name: SearchedBottleneck(region, Context(op_type="norm"), 0.5)}
    judge = AttemptReferee(bottlenecks, run_log, inside)
    found = judge.evaluate(run_log.with_solution(attempt, solution), Level.FULL)[1]
    assert found.verified is (failures == 1)
    assert referee.asked == [(Level.FULL, target.definition.hash)] * 2


def test_a_kernel_without_a_place_in_the_model_is_judged_alone(
    target: Target, profile: Profile, referee: Counting, run_log: RunLog
) -> None:
    unplaced = profile.model_copy(update={"bottlenecks": ()})
    assert only_region(target, unplaced) == ""
    found = InsideModel(referee, referee, run_log, target, unplaced).evaluate(
        request(profile, RMS_CPP, Level.FULL)
    )
    assert found.verified and JUDGED not in found.environment.notes


def test_a_model_of_several_regions_or_shapes_is_left_to_stitching(target: Target, profile: Profile) -> None:
    sites = profile.call_sites
    assert only_region(target, profile.model_copy(update={"call_sites": (*sites, *sites)})) == ""
    as_target = target.model_copy(update={"definition": profile.bottlenecks[0].definition})
    assert only_region(as_target, profile) == ""


def test_other_runs_share_the_verdict_on_the_model_and_not_that_on_the_kernel_in_it(
    target: Target, profile: Profile, referee: Counting, run_log: RunLog
) -> None:
    whole = target.definition.model_copy(update={"reference": f"{NORM}# another model with this region\n"})
    other = target.model_copy(update={"definition": whole})
    region, solution = profile.bottlenecks[0], request(profile, RMS_CPP, Level.FULL).solution
    name, store, full = region.definition.hash, run_log.store, []
    for run, model in (("first", target), ("second", target), ("third", other)):
        store.create_run(make_run(run).model_copy(update={"device": DEVICE.name}))
        log = RunLog(store, store.get_run(run), conditions="here")
        inside = InsideModel(referee, referee, log, model, profile)
        bottlenecks = {name: SearchedBottleneck(region, Context(op_type="norm"), 0.5)}
        attempt = Attempt(id=log.attempt_id(1), run=run, bottleneck=name, number=1)
        judge, attempt = AttemptReferee(bottlenecks, log, inside), log.with_solution(attempt, solution)
        quick = judge.evaluate(attempt, Level.QUICK)[1]
        full.append(judge.evaluate(attempt, Level.FULL)[1])
        assert full[-1].verified and full[-1].kernels == quick.kernels
    assert [bool(evaluation.reused) for evaluation in full] == [False, True, False]
    assert referee.asked == [
        (Level.QUICK, name),
        (Level.FULL, target.definition.hash),
        (Level.FULL, whole.hash),
    ]
