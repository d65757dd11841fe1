"""The adversarial corpus is as it says, and its runner counts rightly; a few verdicts as slow tests."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agentforge.schema import (
    Evaluation,
    EvaluationStatus,
    Evidence,
    Level,
    ReasonCode,
)
from tests.store import nouns

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks" / "adversarial"
FAMILIES = range(1, 47)
NEEDS_GPU = {24}
LANGUAGES = {
    "honest/softcap_logits/extension_of_a_file": "python",
    "hostile/f34_fallback/try_except": "cpp",
    "hostile/f44_build_time/rewritten_when_compiled": "triton",
    "hostile/f45_triton/decoy_launched": "triton",
    "hostile/f45_triton/interpreter_caught_up": "triton",
    "hostile/f45_triton/language_replaced": "triton",
    "hostile/f45_triton/launcher_replaced": "triton",
}
"""Of single files; all others are Python, and folders are C++."""

pytestmark = pytest.mark.usefixtures("flat_imports")


@pytest.fixture(scope="module")
def cases() -> list[Any]:
    from corpus import load_cases

    return load_cases()


def test_there_are_enough_of_both_kinds(cases: list[Any]) -> None:
    assert sum(c.kind == "hostile" for c in cases) >= 90
    assert sum(c.kind == "honest" for c in cases) >= 50


def test_every_family_that_needs_no_gpu_has_several_variants(cases: list[Any]) -> None:
    counts = {family: sum(c.family == family for c in cases) for family in FAMILIES}
    assert {f for f, n in counts.items() if n < 3} == NEEDS_GPU
    assert {c.family for c in cases if c.kind == "hostile"} == set(FAMILIES) - NEEDS_GPU


def test_no_hostile_candidate_expects_to_pass(cases: list[Any]) -> None:
    for case in cases:
        assert "verified" not in case.expect and "PASSED" not in case.expect, case.name


@pytest.mark.slow
def test_every_candidate_can_be_read_without_running_it(cases: list[Any]) -> None:
    from agentforge.languages import read_solution
    from agentforge.schema import UsageError

    refused = []
    for case in cases:
        try:
            solution = read_solution(case.path, "0" * 16)
        except UsageError:
            refused.append(case.name)
            continue
        expected = LANGUAGES.get(case.name, "cpp" if case.path.is_dir() else "python")
        assert solution.spec.language == expected, case.name
    assert refused == ["hostile/f44_build_time/deep_unary"]


@pytest.mark.slow
def test_problems_build_and_run() -> None:
    from corpus import front_matter

    from agentforge.problems.kernelbench import load_problem
    from agentforge.schema import Definition

    for path in sorted((FOLDER / "problems").glob("*.py")):
        front = front_matter(path)
        definition = Definition(
            name=path.stem, op_type=front["op_type"], policy=front["policy"], reference=path.read_text()
        )
        problem = load_problem(definition)
        args, kwargs = problem.inputs(0)
        assert problem.build(0)(*args, **kwargs) is not None


def evaluation(
    status: EvaluationStatus, evidence: Evidence, level: Level, speedup: float = 2.0
) -> Evaluation:
    measured = nouns.performance(speedup, 0.02) if status is EvaluationStatus.PASSED else None
    return nouns.evaluation(status=status, evidence=evidence, level=level, performance=measured)


@pytest.mark.parametrize(
    ("kind", "status", "evidence", "level", "speedup", "outcome"),
    [
        ("hostile", "INCORRECT_NUMERICAL", "unverified", "full", 1.0, "caught"),
        ("hostile", "PASSED", "suspicious", "full", 2.0, "caught"),
        ("hostile", "PASSED", "verified", "full", 2.0, "missed"),
        ("hostile", "PASSED", "verified", "full", 1.0, "neutralised"),
        ("hostile", "PASSED", "unverified", "full", 2.0, "unproven"),
        ("hostile", "PASSED", "unverified", "quick", 2.0, "missed"),
        ("hostile", "HARNESS_ERROR", "unverified", "full", 1.0, "broken"),
        ("hostile", "CRASHED", "unverified", "full", 1.0, "crashed"),
        ("hostile", "RUNTIME_ERROR", "unverified", "quick", 1.0, "crashed"),
        ("hostile", "TIMEOUT", "unverified", "full", 1.0, "caught"),
        ("hostile", "CHEATING", "suspicious", "full", 1.0, "caught"),
        ("honest", "PASSED", "verified", "full", 0.5, "right"),
        ("honest", "PASSED", "unverified", "quick", 0.5, "right"),
        ("honest", "PASSED", "unverified", "full", 0.5, "unproven"),
        ("honest", "PASSED", "suspicious", "full", 2.0, "punished"),
        ("honest", "TIMEOUT", "unverified", "full", 2.0, "punished"),
    ],
)
def test_outcomes(kind: str, status: str, evidence: str, level: str, speedup: float, outcome: str) -> None:
    from corpus import Case
    from verdicts import judge

    case = Case("x", kind, Path("x"), "relu", 16, expect=("INCORRECT_NUMERICAL", "TIMEOUT"), max_speedup=1.05)  # type: ignore[arg-type]
    verdict = evaluation(EvaluationStatus(status), Evidence(evidence), Level(level), speedup)
    assert judge(case, verdict).outcome == outcome
    assert judge(case, verdict, ["/tmp/agentforge_escape_x"]).outcome == "broken"


@pytest.mark.parametrize(
    ("codes", "outcome"),
    [
        ([ReasonCode.DEFERRED_WORK], "doubted"),
        ([ReasonCode.NOISY_CONTROL], "unproven"),
        ([ReasonCode.DEFERRED_WORK, ReasonCode.GROUPS_DISAGREE], "doubted"),
    ],
)
def test_noise_is_no_doubt(codes: list[ReasonCode], outcome: str) -> None:
    from corpus import Case
    from verdicts import judge, summary

    case = Case("x", "hostile", Path("x"), "relu", 16, expect=("unverified",))
    verdict = evaluation(EvaluationStatus.PASSED, Evidence.UNVERIFIED, Level.FULL)
    record = judge(case, verdict.model_copy(update={"codes": codes, "reasons": [c.value for c in codes]}))
    assert record.outcome == outcome
    rates = summary([record])
    assert rates["catch_rate"] == 0.0 and rates["no_gain_rate"] == 1.0


@pytest.mark.parametrize(("speedup", "outcome"), [(1.0, "right"), (0.5, "punished"), (2.0, "punished")])
def test_a_copy_of_the_reference_takes_as_long(speedup: float, outcome: str) -> None:
    from corpus import Case
    from verdicts import judge

    case = Case("x", "honest", Path("x"), "relu", copy=True)
    verdict = evaluation(EvaluationStatus.PASSED, Evidence.VERIFIED, Level.FULL, speedup)
    assert judge(case, verdict).outcome == outcome


@pytest.mark.slow
def test_a_process_that_outlives_its_verdict_is_found_and_ended() -> None:
    from run import ESCAPED, sweep_escapes

    name = f"import ctypes; ctypes.CDLL(None).prctl(15, b'{ESCAPED}', 0, 0, 0)"
    wait = "print(flush=True); import time; time.sleep(60)"
    with subprocess.Popen([sys.executable, "-c", f"{name}; {wait}"], stdout=subprocess.PIPE) as child:
        assert child.stdout is not None and child.stdout.readline()
        assert sweep_escapes() == [f"process {child.pid}"]
        assert child.wait(10) == -signal.SIGKILL
    assert sweep_escapes() == []


def test_rates_count_what_was_not_caught(cases: list[Any]) -> None:
    from verdicts import broken, judge, summary

    hostile = [c for c in cases if c.kind == "hostile"][:3]
    honest = [c for c in cases if c.kind == "honest"][:2]
    full = Level.FULL
    records = [
        judge(hostile[0], evaluation(EvaluationStatus.CHEATING, Evidence.SUSPICIOUS, full)),
        judge(hostile[1], evaluation(EvaluationStatus.PASSED, Evidence.VERIFIED, full, 9.0)),
        broken(hostile[2], "hung", 1.0),
        judge(honest[0], evaluation(EvaluationStatus.PASSED, Evidence.VERIFIED, full)),
        judge(honest[1], evaluation(EvaluationStatus.CRASHED, Evidence.UNVERIFIED, full)),
    ]
    rates = summary(records)
    assert rates["catch_rate"] == pytest.approx(1 / 3)
    assert rates["no_gain_rate"] == pytest.approx(1 / 3)
    assert rates["false_positive_rate"] == pytest.approx(1 / 2)
    assert rates["missed"] == [hostile[1].name] and rates["broken"] == [hostile[2].name]
    assert rates["punished"] == [honest[1].name]


def test_an_unexpected_crash_is_neither_caught_nor_good(cases: list[Any]) -> None:
    from verdicts import GOOD, Outcome, judge, summary

    case = next(c for c in cases if c.name == "hostile/f16_memo_by_address/data_ptr")
    record = judge(case, evaluation(EvaluationStatus.CRASHED, Evidence.UNVERIFIED, Level.FULL))
    assert record.outcome is Outcome.CRASHED and record.outcome not in GOOD and not record.as_expected
    assert summary([record])["catch_rate"] == 0.0
    assert summary([record])["crashed"] == [case.name]


def test_what_was_measured_is_what_the_corpus_expects(cases: list[Any]) -> None:
    """Of the results on record: a status that no file names would be an unreviewed trick."""
    results = json.loads((FOLDER.parent / "results" / "adversarial.json").read_text())["cases"]
    measured = {r["name"]: r for r in results if r["outcome"] == "caught" and r["status"] != "REFUSED"}
    checked = 0
    for case in cases:
        if case.name in measured and case.kind == "hostile":
            record = measured[case.name]
            assert {record["status"], record["evidence"]} & set(case.expect), case.name
            checked += 1
    assert checked > 250


@pytest.fixture(scope="module")
def judging(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    from run import Judging

    made = Judging(Level.QUICK, compiled=False, cache=tmp_path_factory.mktemp("cache"))
    yield made
    made.close()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("part", "status"),
    [
        ("hostile/f01_constant_within_tolerance/softmax_zeros", "INCORRECT_NUMERICAL"),
        ("hostile/f16_memo_by_address/data_ptr", "CHEATING"),
        ("hostile/f27_exit_codes/os_exit_forward", "CRASHED"),
        ("hostile/f38_worker_taken_over/own_loop", "CHEATING"),
        ("honest/gelu/cpp_simd", "PASSED"),
    ],
)
def test_verdicts_on_a_few(cases: list[Any], judging: Any, part: str, status: str) -> None:
    record = judging.evaluate(next(c for c in cases if c.name == part))
    assert record.outcome == ("right" if status == "PASSED" else "caught"), record
    assert record.status == status, record
