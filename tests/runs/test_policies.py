"""`optimize` reaches a verified kernel under policies of different kinds.

`tests/loop/test_policies.py` has the loop under each policy.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from statistics import fmean
from types import SimpleNamespace
from typing import Any

import pytest

from agentforge.config import load_settings
from agentforge.referee import EvaluationRequest, Referee
from agentforge.schema import Evaluation, Solution
from agentforge.store import Store
from tests.cli.conftest import Run, home, run
from tests.steady import SteadyReferee

__all__ = ["home", "run"]

MODEL = """
import torch

class Model(torch.nn.Module):
    def forward(self, x):
        return torch.nn.functional.gelu(x) * torch.sigmoid(x) + x

def get_inputs():
    return [torch.randn(128, 512)]

def get_init_inputs():
    return []
"""
QUICK = (
    "--json", "--device", "cpu", "--attempts", "3", "-c", "referee.compile_baseline=false",
    "-c", "referee.task_seconds=0", "-c", "referee.quick_seconds=0.2", "-c", "referee.quick_blocks=2",
    "-c", "referee.threads=2", "-c", "search.sol_fraction=1",
    "-c", "search.patience=9",
)  # fmt: skip


def speed(solution: Solution) -> float:
    """Over eager: by what was written, the same on every machine."""
    return 1.2 + int(solution.hash[:4], 16) / 0x10000


@pytest.fixture
def steady(monkeypatch: pytest.MonkeyPatch) -> None:
    real = Referee.evaluate

    def evaluate(self: Referee, request: EvaluationRequest, **options: Any) -> Evaluation:
        referee: Any = SimpleNamespace(evaluate=partial(real, self))
        return SteadyReferee(referee, speed).evaluate(request, **options)

    monkeypatch.setattr(Referee, "evaluate", evaluate)


@pytest.mark.slow
@pytest.mark.usefixtures("steady", "known_roofline", "no_slow_parts")
@pytest.mark.parametrize("policy", ["mcts", "evolution"])
def test_optimize_reaches_a_verified_result(run: Run, tmp_path: Path, policy: str) -> None:
    (tmp_path / "model.py").write_text(MODEL)
    answer = run("optimize", "model.py", *QUICK, "-c", f"search.policy={policy}")
    assert answer.code == 0, answer.err + answer.out
    with Store(load_settings([]).url) as store:
        attempts = store.attempts(answer.json["run"]["id"])
        found = [store.get_evaluation(a.evaluation) for a in attempts if a.evaluation]
    assert len(attempts) > 2
    assert any(one.verified for one in found)
    assert answer.json["run"]["artifact"]
    assert answer.json["mode"] == "kernels"


@pytest.mark.slow
@pytest.mark.usefixtures("steady", "known_roofline", "no_slow_parts")
def test_the_tuner_keeps_its_points_with_the_attempt(run: Run, tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(MODEL)
    answer = run("optimize", "model.py", *QUICK, "--attempts", "1", "-c", "search.tune=4")
    assert answer.code == 0, answer.err + answer.out
    with Store(load_settings([]).url) as store:
        (attempt,) = store.attempts(answer.json["run"]["id"])
        solution = store.get_solution(attempt.solution or "")
        assert store.get_evaluation(attempt.evaluation or "").verified
    assert len(attempt.trials) == 4 and attempt.trials[0].won
    best = next(trial for trial in reversed(attempt.trials) if trial.won)
    assert best.parameters.items() <= solution.parameters.items()
    means = [fmean(t.log_speedups) for t in attempt.trials if t.won]
    assert means == sorted(means)
