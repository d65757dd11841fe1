"""What a call achieved of a roofline with round numbers, and the referee with a profiler behind it."""

from __future__ import annotations

from typing import Any

import pytest

from agentforge.devices.null import detect_null, null_roofline
from agentforge.profiling.nsight import Observation
from agentforge.profiling.profiled_evaluator import ProfiledEvaluator, with_observation
from agentforge.profiling.roofline_metrics import achieved, with_roofline, work_by_definition
from agentforge.profiling.speed_of_light import Work
from agentforge.referee import EvaluationRequest, OnStage
from agentforge.referee.checks.speed_of_light import below_speed_of_light
from agentforge.schema import (
    Bound,
    Evaluation,
    EvaluationStatus,
    Evidence,
    Finding,
    Interval,
    Level,
    Metric,
    Performance,
    ReasonCode,
)
from tests.store import nouns

DEVICE, ROOFLINE = detect_null(), null_roofline()
LARGE = Work(bytes=1e9, flops=1e9)


def _evaluation(latency_s: float = 0.02, **changes: Any) -> Evaluation:
    one = Interval(point=1.0, low=0.9, high=1.1)
    performance = Performance(
        latency_s=latency_s,
        baseline_s={"eager": 0.1},
        speedup={"eager": one},
        control=one,
        blocks=8,
        processes=1,
    )
    base = {"status": EvaluationStatus.PASSED, "evidence": Evidence.UNVERIFIED, "performance": performance}
    return nouns.evaluation().model_copy(update={**base, **changes})


def test_achieved_against_the_roofline():
    values = {m.name: m.value for m in achieved(0.02, LARGE, DEVICE, ROOFLINE)}
    assert values["achieved_bandwidth"] == pytest.approx(5e10)
    assert values["bandwidth_share"] == pytest.approx(0.5)
    assert values["flops_share"] == pytest.approx(0.05)
    assert values["call_overhead_share"] == pytest.approx(5e-5)


def test_a_working_set_in_the_cache_has_the_caches_ceiling():
    values = {m.name: m.value for m in achieved(1e-4, Work(1e7, 0), DEVICE, ROOFLINE)}
    assert values["bandwidth_ceiling"] == 4e11
    assert "flops_share" not in values


def test_the_dtype_decides_the_peak():
    values = {m.name: m.value for m in achieved(0.02, Work(1e9, 1e9, "bfloat16"), DEVICE, ROOFLINE)}
    assert values["flops_ceiling"] == 2e12


def test_an_evaluation_says_what_limits_it():
    fast = with_roofline(_evaluation(0.0125), LARGE, DEVICE, ROOFLINE)
    assert fast.classification is not None
    assert fast.classification.bound is Bound.MEMORY
    lazy = _evaluation(0.1, metrics=(Metric(name="threads_busy", value=1.0, source="referee"),))
    lazy = with_roofline(lazy, LARGE, DEVICE, ROOFLINE)
    assert lazy.classification is not None
    assert lazy.classification.bound is Bound.OCCUPANCY
    assert next(r.value for r in lazy.classification.reasons) == 0.25
    assert {m.name for m in lazy.metrics} >= {"threads_busy", "threads_share", "achieved_bandwidth"}


def test_what_was_not_timed_stays_as_it_is():
    failed = nouns.evaluation().model_copy(
        update={
            "status": EvaluationStatus.COMPILE_ERROR,
            "evidence": Evidence.UNVERIFIED,
            "performance": None,
        }
    )
    assert with_roofline(failed, LARGE, DEVICE, ROOFLINE) is failed


def test_work_by_definition():
    profile = nouns.profile()
    work = work_by_definition(profile)
    assert work.keys() == {b.definition.hash for b in profile.bottlenecks}


def test_the_work_of_several_sizes_is_their_mean_as_the_latency_is():
    profile = nouns.profile()
    (bottleneck,) = profile.bottlenecks
    site = bottleneck.call_sites[0].model_copy(update={"bytes": 1e6, "flops": 1e6})
    large = site.model_copy(update={"bytes": 1e9, "flops": 5e6, "calls": 3})
    sizes = bottleneck.model_copy(update={"call_sites": (site, large)})
    (work,) = work_by_definition(profile.model_copy(update={"bottlenecks": (sizes,)})).values()
    assert work == Work((1e6 + 3e9) / 4, 4e6, "float32")
    latency_s = (1e6 + 3e9) / 4 / ROOFLINE.bandwidth  # each size at the ceiling
    shares = {m.name: m.value for m in achieved(latency_s, work, DEVICE, ROOFLINE)}
    assert shares["bandwidth_share"] == pytest.approx(1.0)


class Judge:
    def __init__(self, evaluation: Evaluation) -> None:
        self.evaluation = evaluation
        self.built: list[str] = []

    def evaluate(self, request: EvaluationRequest, *, progress: OnStage | None = None) -> Evaluation:
        return self.evaluation

    def build(self, solution: Any) -> None:
        self.built.append(solution.hash)


class Observer:
    def __init__(self, seen: Observation) -> None:
        self.seen = seen
        self.asked = 0

    def observe_evaluated(self, *args: Any) -> Observation:
        self.asked += 1
        return self.seen


def _instrumented(judge: Judge, observer: Observer | None = None) -> Evaluation:
    definition, solution = nouns.definition(), nouns.solution()
    instrumented = ProfiledEvaluator(judge, DEVICE, ROOFLINE, {definition.hash: LARGE}, observer)
    instrumented.build(solution)
    return instrumented.evaluate(
        EvaluationRequest(definition, [nouns.workload()], solution, level=Level.QUICK)
    )


def test_the_verdict_stays_the_referees():
    before = _evaluation()
    judge = Judge(before)
    after = _instrumented(judge)
    assert judge.built == [nouns.solution().hash]
    changed = {k for k, v in after if v != getattr(before, k)}
    assert changed == {"metrics", "classification"}


def test_counters_go_before_the_roofline():
    evaluation = _evaluation()
    seen = Observation(
        solution=evaluation.solution,
        metrics=(Metric(name="kernel_time", value=1.0, kernel="k"),),
        findings=(Finding(source="ncu-rule", title="Long Scoreboard"),),
        kernel_s=0.0125,
    )
    observer = Observer(seen)
    after = _instrumented(Judge(evaluation), observer)
    assert observer.asked == 1
    assert after.findings == seen.findings
    assert after.classification is not None
    # 80% of the bandwidth while its kernels run, though half of it over the call.
    assert (after.classification.bound, after.classification.source) == (Bound.MEMORY, "profiler")
    values = {m.name: m.value for m in after.metrics}
    assert all(values[r.metric] == r.value for r in after.classification.reasons)
    assert values["kernel_time_share"] == pytest.approx(0.0125 / 0.02)


def test_a_failure_is_not_profiled():
    observer = Observer(Observation(solution=""))
    failed = _evaluation(status=EvaluationStatus.CRASHED, performance=None)
    _instrumented(Judge(failed), observer)
    assert observer.asked == 0


def test_a_profile_of_another_solution_is_refused():
    with pytest.raises(ValueError, match="does not belong to"):
        with_observation(_evaluation(), Observation(solution="another"), None, DEVICE, ROOFLINE)


class Physicist:
    """A referee that doubts results faster than the speed of light passed to it."""

    def __init__(self, latency_s: float) -> None:
        self.latency_s = latency_s
        self.told: list[float | None] = []

    def evaluate(self, request: EvaluationRequest, *, progress: OnStage | None = None) -> Evaluation:
        self.told.append(request.sol_s)
        evaluation = _evaluation(self.latency_s)
        assert evaluation.performance is not None
        performance = evaluation.performance.model_copy(update={"sol_s": request.sol_s})
        text = below_speed_of_light(performance, DEVICE, 1 << 40)
        reasons = ((text,), (ReasonCode.SPEED_OF_LIGHT,)) if text else ((), ())
        return evaluation.model_copy(update={"reasons": reasons[0], "codes": reasons[1]})


@pytest.mark.parametrize(
    ("risen", "told", "doubted"),
    [
        (2.0, [0.01, 0.005, 0.005], False),
        (1.2, [0.01, 0.01 / 1.2, 0.01 / 1.2], True),
        (1.0, [0.01, 0.01], True),
    ],
)
def test_ceilings_are_doubted_where_something_is_faster(
    risen: float, told: list[float], doubted: bool
) -> None:
    """Twice: a second solution is held against the ceilings as they are by then."""
    referee, definition = Physicist(latency_s=0.006), nouns.definition()
    after = ROOFLINE.model_copy(update={"bandwidth": risen * ROOFLINE.bandwidth})
    instrumented = ProfiledEvaluator(
        referee, DEVICE, ROOFLINE, {definition.hash: LARGE}, measure_again=lambda: after
    )
    for _ in range(2):
        found = instrumented.evaluate(
            EvaluationRequest(definition, [nouns.workload()], nouns.solution(), level=Level.FULL, sol_s=0.01)
        )
        assert bool(found.reasons) is doubted
    assert referee.told == pytest.approx(told)


def test_threads_of_the_host_say_nothing_of_a_gpu() -> None:
    gpu = DEVICE.model_copy(update={"kind": "cuda", "torch_type": "", "threads": 132})
    launching = _evaluation(0.1, metrics=(Metric(name="threads_busy", value=1.0, source="referee"),))
    found = with_roofline(launching, LARGE, gpu, ROOFLINE)
    assert "threads_share" not in {m.name for m in found.metrics}
    assert found.classification is not None and found.classification.bound is Bound.LATENCY
