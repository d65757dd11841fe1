"""The verdict rule: which findings give verified, suspicious and unverified."""

from __future__ import annotations

import json

import pytest
from pydantic import ValidationError

from agentforge.referee import EvaluationRequest
from agentforge.referee.checks.behaviour.attestation import _joined
from agentforge.referee.result import Findings, evaluation, performance
from agentforge.referee.timing.timer import GroupTimes
from agentforge.schema import (
    Evaluation,
    EvaluationStatus,
    Evidence,
    Interval,
    KernelUse,
    Level,
    Performance,
    ReasonCode,
    StageResult,
    Workload,
)
from agentforge.testing.language import make_solution

from .judging import DEVICE, WORKLOAD, problem

DEFINITION = problem("return x", "torch.rand(2)")
SOLUTION = make_solution("python", {"model_new.py": "pass"}, definition=DEFINITION.hash)
ONE = Interval(point=1.0, low=0.99, high=1.01)
MEASURED = Performance(
    latency_s=1e-3,
    baseline_s={"eager": 1e-3},
    speedup={"eager": ONE},
    control=ONE,
    blocks=8,
    processes=3,
)
FAILURES = [status for status in EvaluationStatus if status is not EvaluationStatus.PASSED]


def verdict(findings: Findings) -> Evaluation:
    request = EvaluationRequest(DEFINITION, [WORKLOAD], SOLUTION, Level.FULL)
    return evaluation(findings, request, DEVICE, "none", 1.0)


def test_a_timed_pass_without_a_doubt_is_verified() -> None:
    found = verdict(Findings(performance=MEASURED))
    assert found.verified
    assert found.performance == MEASURED
    assert found.reasons == found.codes == ()


def test_a_pass_that_was_not_timed_is_unverified() -> None:
    assert verdict(Findings()).evidence is Evidence.UNVERIFIED


def test_a_doubt_is_unverified_and_keeps_the_numbers() -> None:
    findings = Findings(performance=MEASURED)
    findings.doubt(ReasonCode.NOISY_CONTROL, "noisy")
    found = verdict(findings)
    assert found.evidence is Evidence.UNVERIFIED
    assert found.performance == MEASURED
    assert (found.reasons, found.codes) == (("noisy",), (ReasonCode.NOISY_CONTROL,))


def test_the_seconds_of_the_stages_and_the_rest_add_up() -> None:
    ran = [("timing", 0.25), ("end", 0.125), ("timing", 0.5)]
    stages = [StageResult(name=n, status=EvaluationStatus.PASSED, seconds=s) for n, s in ran]
    found = verdict(Findings(performance=MEASURED, stages=stages))
    assert found.seconds_by_stage() == {"timing": 0.75, "end": 0.125, "outside of stages": 0.125}


def test_a_suspicion_outweighs_a_doubt() -> None:
    findings = Findings(performance=MEASURED)
    findings.doubt(ReasonCode.NOISY_CONTROL, "noisy")
    findings.suspect(ReasonCode.IDLE_KERNELS, "idle")
    found = verdict(findings)
    assert found.evidence is Evidence.SUSPICIOUS
    assert found.reasons == ("idle", "noisy")
    assert found.because(ReasonCode.IDLE_KERNELS)
    assert found.reasons_with(ReasonCode.NOISY_CONTROL) == ("noisy",)


@pytest.mark.parametrize("status", FAILURES)
def test_a_failure_has_its_code_and_no_performance(status: EvaluationStatus) -> None:
    findings = Findings(performance=MEASURED)
    findings.fail(status, "why")
    found = verdict(findings)
    cheating = status is EvaluationStatus.CHEATING
    assert found.evidence is (Evidence.SUSPICIOUS if cheating else Evidence.UNVERIFIED)
    assert found.performance is None
    assert found.codes == (ReasonCode.of(status),)


def test_a_failure_may_have_a_closer_code() -> None:
    findings = Findings()
    findings.fail(EvaluationStatus.CHEATING, "too fast", ReasonCode.SPEED_OF_LIGHT)
    assert verdict(findings).codes == (ReasonCode.SPEED_OF_LIGHT,)


def test_the_same_sentence_is_one_reason() -> None:
    findings = Findings()
    for _ in range(3):
        findings.suspect(ReasonCode.MORE_PROCESSES, "two more")
    found = verdict(findings)
    assert (found.reasons, found.codes) == (("two more",), (ReasonCode.MORE_PROCESSES,))


def test_a_pass_has_no_general_code() -> None:
    with pytest.raises(ValueError, match="passed"):
        ReasonCode.of(EvaluationStatus.PASSED)


def test_evaluations_that_were_stored_before_codes_are_read() -> None:
    findings = Findings()
    findings.fail(EvaluationStatus.UNSUPPORTED, "needs a GPU")
    stored = json.loads(verdict(findings).model_dump_json())
    assert stored["status"] == "UNSUPPORTED"
    del stored["codes"]
    stored["status"] = "UNVERIFIED"
    read = Evaluation.model_validate_json(json.dumps(stored))
    assert read.status is EvaluationStatus.UNSUPPORTED
    assert read.reasons == ("needs a GPU",)
    assert read.codes == ()
    assert not read.because(ReasonCode.UNSUPPORTED)


def test_each_reason_needs_one_code() -> None:
    findings = Findings()
    findings.doubt(ReasonCode.QUICK_LEVEL, "quick")
    stored = json.loads(verdict(findings).model_dump_json())
    stored["codes"] *= 2
    with pytest.raises(ValidationError, match="one code"):
        Evaluation.model_validate_json(json.dumps(stored))


def test_several_workloads_have_a_time_each() -> None:
    def times(scale: float) -> GroupTimes:
        own = {"candidate": 1.0, "eager": 2.0, "control": 2.0}
        return GroupTimes(
            {name: [scale * s * factor for factor in (0.9, 1.0, 1.1)] for name, s in own.items()}
        )

    groups = [[times(8.0), times(1.0)]] * 3
    found = performance(groups, [1, 3], None, ["prefill", "decode"])
    assert found.workload_s == {
        "prefill": {"candidate": 8.0, "eager": 16.0},
        "decode": {"candidate": 1.0, "eager": 2.0},
    }
    assert found.latency_s == pytest.approx((8 + 3 * 1) / 4)
    assert performance([[times(1.0)]] * 3, [1], None).workload_s == {}


def test_workloads_of_a_definition_count_the_same_whatever_they_take() -> None:
    def times(seconds: float, speedup: float) -> GroupTimes:
        own = {"candidate": seconds, "eager": seconds * speedup, "control": seconds * speedup}
        return GroupTimes({name: [s * factor for factor in (0.9, 1.0, 1.1)] for name, s in own.items()})

    groups = [[times(100.0, 1.0), times(1.0, 8.0), times(0.1, 8.0)]] * 3
    found = performance(groups, None, None, ["1", "2", "3"])
    assert [found.workload_speedup[w]["eager"].point for w in ("1", "2", "3")] == pytest.approx(
        [1.0, 8.0, 8.0]
    )
    assert found.speedup["eager"].point == pytest.approx(4.0)
    assert found.latency_s == pytest.approx(10 ** (1 / 3))
    assert found.baseline_s["eager"] == pytest.approx(4 * 10 ** (1 / 3))
    keyed = [Workload(name=name, key=name, source="reference") for name in ("1", "2")]
    plain = [workload.model_copy(update={"key": "", "weight": 2.0}) for workload in keyed]
    asked = [EvaluationRequest(DEFINITION, w, SOLUTION).weights for w in (keyed, plain)]
    assert asked == [None, [2.0, 2.0]]


def test_kernels_of_several_workloads_are_added_up() -> None:
    first = (KernelUse(name="k", own=True, calls=2, share=0.5), KernelUse(name="aten.mm", own=False, calls=1))
    second = (KernelUse(name="k", own=True, calls=3, share=0.1), KernelUse(name="k", own=False, calls=7))
    found = {(use.name, use.own): (use.calls, use.share) for use in _joined(first, second)}
    assert found == {("k", True): (5, 0.5), ("aten.mm", False): (1, 0.0), ("k", False): (7, 0.0)}
