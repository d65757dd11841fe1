"""The failure of a trusted worker is the referee's own, and never the verdict on a candidate."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from agentforge.referee import EvaluationRequest, Referee
from agentforge.schema import Definition, EvaluationStatus, Level

from .judging import WORKLOAD, judge, problem, solution_of, stage

DEFINITION = problem("return torch.tanh(x)", "torch.randn(64, 64)")


@pytest.mark.parametrize(
    ("name", "began", "number"),
    [("eager", "random", signal.SIGSEGV), ("eager", "timing", signal.SIGKILL),
     ("control", "timing", signal.SIGSEGV)],
)  # fmt: skip
def test_the_death_of_a_trusted_worker_is_no_verdict(
    referee: Referee, name: str, began: str, number: signal.Signals
) -> None:
    def kill(stage_name: str) -> None:
        if stage_name == began:
            assert referee._baselines is not None
            os.kill(referee._baselines.clients[name].worker.pid, number)

    request = EvaluationRequest(DEFINITION, [WORKLOAD], solution_of(DEFINITION), Level.QUICK)
    evaluation = referee.evaluate(request, progress=kill)
    assert evaluation.status is EvaluationStatus.HARNESS_ERROR, evaluation.reasons
    assert f"the reference failed in the worker {name}" in evaluation.reasons[0]
    assert stage(evaluation, began).status is EvaluationStatus.HARNESS_ERROR
    assert judge(referee, DEFINITION).passed, "the next evaluation has new workers"


def test_a_reference_that_raises_later_is_no_verdict(referee: Referee, tmp_path: Path) -> None:
    flag = tmp_path / "raise"
    check = f"if __import__('os').path.exists({str(flag)!r}): raise ValueError('not now')\n"
    definition = problem(f"{check}return torch.tanh(x)", "torch.randn(64, 64)")
    request = EvaluationRequest(
        definition, [WORKLOAD], solution_of(definition, ("raise ValueError('not now')", "pass")), Level.QUICK
    )
    evaluation = referee.evaluate(request, progress=lambda name: flag.touch() if name == "timing" else None)
    assert evaluation.status is EvaluationStatus.HARNESS_ERROR, evaluation.reasons
    assert "ValueError: not now" in evaluation.reasons[0]
    assert "raise ValueError('not now')" in evaluation.log


def test_a_candidate_s_death_is_its_verdict(referee: Referee) -> None:
    dies = ("return torch.tanh(x)", "import os; os.kill(os.getpid(), 11)")
    assert judge(referee, DEFINITION, dies).status is EvaluationStatus.CRASHED


def test_a_reference_that_sets_the_number_of_threads_runs_with_those_of_the_settings(
    referee: Referee,
) -> None:
    sets, checks = "torch.set_num_threads(2)\n", "assert torch.get_num_threads() == 1\n"
    source = problem(f"{checks}return torch.tanh(x)", "torch.randn(64, 64)").reference
    source = source.replace("import torch\n", f"import torch\n{sets}")
    definition = Definition(name="threads", op_type="other", reference=source)
    evaluation = judge(referee, definition, (sets, ""), (checks, "\n"))
    assert evaluation.passed, evaluation.reasons


def test_a_candidate_gets_the_constructor_arguments_of_the_reference(referee: Referee) -> None:
    source = problem("return x * self.scale", "torch.randn(64, 64)", "self.scale = scale").reference
    source = source.replace("__init__(self):", "__init__(self, scale):")
    source = source.replace("return []", "return [torch.randn(64)]")
    definition = Definition(name="drawn", op_type="other", reference=source)
    evaluation = judge(referee, definition)
    assert evaluation.passed, evaluation.reasons


def test_a_candidate_draws_what_the_reference_draws_in_its_constructor(referee: Referee) -> None:
    draws = "import random; import numpy as np; self.scale = random.random() + np.random.rand()"
    evaluation = judge(referee, problem("return x * self.scale", "torch.randn(64, 64)", draws))
    assert evaluation.passed, evaluation.reasons
