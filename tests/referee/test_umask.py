"""Workers of root run as another user. They read what they need, whatever the umask is."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from agentforge.referee import Presenter
from agentforge.referee.probe import probe_worker
from agentforge.referee.referee import choose_sandbox
from agentforge.schema import EvaluationStatus
from agentforge.testing.language import make_solution

from .judging import WORKLOAD, judge, problem, quick_referee, solution_of

KERNEL = 'extern "C" void fill(float* out, long n) { for (long i = 0; i < n; i++) out[i] = 1; }'
MODEL = """
from agentforge_cpp import load
kernels = load(__file__, "kernel.cpp")

class ModelNew:
    pass
"""
REFERENCE = problem("return torch.relu(x)", "torch.randn(64, 64)")


@pytest.fixture(autouse=True)
def private() -> Iterator[None]:
    before = os.umask(0o077)
    yield
    assert os.umask(before) == 0o077


@pytest.mark.slow
def test_an_honest_solution_passes(tmp_path: Path) -> None:
    with quick_referee(tmp_path / "cache") as referee:
        evaluation = judge(referee, REFERENCE)
        assert evaluation.status is EvaluationStatus.PASSED, evaluation.reasons


@pytest.mark.slow
def test_a_subject_runs(tmp_path: Path) -> None:
    with quick_referee(tmp_path / "cache") as referee:
        presenter: Presenter = referee
        with presenter.subject(REFERENCE, [WORKLOAD], solution_of(REFERENCE)) as subject:
            done = subject.run(subject.command(), timeout_s=60)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_a_solution_is_built_before_it_is_judged(tmp_path: Path) -> None:
    """As a run does, beside other evaluations."""
    solution = make_solution("cpp", {"kernel.cpp": KERNEL, "model_new.py": MODEL})
    with quick_referee(tmp_path / "cache") as referee:
        assert referee.machine_code_hash(solution)


def test_the_doctor_s_worker_is_confined() -> None:
    assert probe_worker(choose_sandbox("auto"))
