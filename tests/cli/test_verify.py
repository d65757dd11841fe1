"""`agentforge verify`: exit codes and the JSON answer; the referee itself is real in the slow tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agentforge.cli.commands.verify import exit_status, show, stage_rows, summary
from agentforge.schema import Evaluation, EvaluationStatus, Evidence, Interval, Level, StageResult
from tests.loop.test_bottleneck_state import measured

from .conftest import Run

REFERENCE = """
import torch

class Model(torch.nn.Module):
    def forward(self, x):
        return torch.sigmoid(x) * x

def get_inputs():
    return [torch.randn(64, 64)]

def get_init_inputs():
    return []
"""


def verdict(**changes: Any) -> Evaluation:
    return Evaluation.model_validate({**dict(measured(2.0)), **changes})


@pytest.mark.parametrize(
    ("evaluation", "code"),
    [
        (verdict(), 0),
        (verdict(evidence=Evidence.UNVERIFIED), 1),
        (verdict(evidence=Evidence.SUSPICIOUS), 1),
        (verdict(evidence=Evidence.UNVERIFIED, level=Level.QUICK), 0),
        (verdict(evidence=Evidence.SUSPICIOUS, level=Level.QUICK), 1),
        *[
            (verdict(status=status, evidence=Evidence.UNVERIFIED, performance=None), 3 if harness else 1)
            for status in EvaluationStatus
            if status is not EvaluationStatus.PASSED
            for harness in [status is EvaluationStatus.HARNESS_ERROR]
        ],
    ],
)
def test_exit_codes(evaluation: Evaluation, code: int) -> None:
    assert exit_status(evaluation) == code


def test_the_json_answer_begins_with_what_a_program_reads() -> None:
    body = summary(verdict())
    assert list(body)[:6] == ["status", "evidence", "reasons", "stages", "speedup", "environment"]
    assert set(body["speedup"]["eager"]) == {"point", "low", "high"}
    assert summary(verdict(status="CRASHED", evidence="unverified", performance=None))["speedup"] == {}


@pytest.fixture
def reference(home: Path) -> str:
    path = home.parent / "reference.py"
    path.write_text(REFERENCE)
    return str(path)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("nope.py",), "does not exist"),
        (("reference.py", "--level", "sloppy"), "level takes quick or full"),
        (("reference.py", "--device", "abacus"), "abacus"),
        (("empty.py",), "empty.py"),
        (("binary.py",), "binary.py"),
    ],
)
def test_bad_usage(run: Run, reference: str, arguments: tuple[str, ...], said: str) -> None:
    Path("empty.py").write_text("")
    Path("binary.py").write_bytes(bytes(range(256)))
    answer = run("verify", reference, *arguments, "--json")
    assert answer.code == 2
    assert said in answer.json["error"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("factor", "status", "code"), [("", "PASSED", 0), (" * 2", "INCORRECT_NUMERICAL", 1)]
)
def test_a_verdict(run: Run, reference: str, factor: str, status: str, code: int) -> None:
    candidate = REFERENCE.replace("Model", "ModelNew").replace("* x", f"* x{factor}")
    Path("candidate.py").write_text(candidate)
    quick = ("--level", "quick", "-c", "referee.compile_baseline=false", "-c", "referee.quick_seconds=0.2",
             "-c", "referee.threads=2")  # fmt: skip
    answer = run("verify", reference, "candidate.py", "--json", "--device", "cpu", *quick)
    assert (answer.json["status"], answer.code) == (status, code)
    assert answer.json["evidence"] == "unverified"
    assert sum(answer.json["seconds_by_stage"].values()) == pytest.approx(answer.json["seconds"])


def test_several_workloads_have_a_line_each(capsys: pytest.CaptureFixture[str]) -> None:
    performance = verdict().performance
    assert performance is not None
    each = {name: {"eager": Interval(point=p, low=p, high=p)} for name, p in (("small", 1.0), ("large", 4.0))}
    show(verdict(performance=performance.model_copy(update={"workload_speedup": each})))
    said = capsys.readouterr().out
    assert "workload small: 1.00x [1.00, 1.00] over eager\nworkload large: 4.00x" in said


def test_the_table_has_one_row_for_each_stage_and_adds_up() -> None:
    passed, failed = EvaluationStatus.PASSED, EvaluationStatus.TIMEOUT
    ran = [("smoke", passed, 0.25, "a"), ("timing", passed, 1.0, "8 blocks"), ("timing", failed, 2.0, "late")]
    stages = tuple(StageResult(name=n, status=s, seconds=t, detail=d) for n, s, t, d in ran)
    evaluation = Evaluation.model_construct(stages=stages, seconds=4.0)
    assert stage_rows(evaluation) == [
        ("smoke", "PASSED", "0.25", "a"),
        ("timing", "TIMEOUT", "3.00", "8 blocks | late"),
        ("outside of stages", "", "0.75", ""),
        ("all", "", "4.00", ""),
    ]
