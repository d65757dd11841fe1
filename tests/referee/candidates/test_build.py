"""Where solutions are built, under which users they run, and what they may take."""

from __future__ import annotations

import errno
import math
import os
import resource
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from agentforge.config import RefereeSettings
from agentforge.isolation import procfs
from agentforge.isolation.sandboxes import Limits
from agentforge.referee import EvaluationRequest, Referee
from agentforge.referee.candidates import build
from agentforge.referee.candidates.build import BuildFailure, CandidateBuilder
from agentforge.schema import Level, MachineError
from agentforge.testing.language import make_solution

from ..judging import DEVICE, WORKLOAD, problem, solution_of

SOLUTION = make_solution("python", {"model_new.py": "pass"})


def builder_of(folder: Path, **settings: Any) -> CandidateBuilder:
    """A builder without processes."""
    return CandidateBuilder(
        mock.Mock(), mock.Mock(), mock.Mock(), folder, folder, RefereeSettings(**settings)
    )


@pytest.mark.parametrize(
    ("number", "raised"),
    [
        (errno.ENOSPC, MachineError),
        (errno.EMFILE, MachineError),
        (errno.EPERM, MachineError),
        (errno.EROFS, MachineError),
        (errno.EDQUOT, MachineError),
        (errno.ENAMETOOLONG, BuildFailure),
        (errno.ENOTDIR, BuildFailure),
    ],
)
def test_sources_are_blamed_for_their_names_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, raised: type[Exception]
) -> None:
    language = mock.Mock(**{"build.side_effect": OSError(number, os.strerror(number))})
    monkeypatch.setattr(CandidateBuilder, "_language", lambda *_: language)
    with pytest.raises(raised):
        builder_of(tmp_path).build(SOLUTION)
    assert not list(tmp_path.iterdir())


def test_identities_are_those_that_root_has(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(procfs, "spare_ids", lambda: range(32_769, 32_772))
    assert {build._next_identity() for _ in range(9)} == {32_769, 32_770, 32_771}
    monkeypatch.setattr(procfs, "spare_ids", lambda: range(0))
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert build._next_identity() == 0
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    with pytest.raises(MachineError, match="no other user ids"):
        build._next_identity()


class _Forked(Exception):
    """Instead of a worker."""


@pytest.mark.parametrize(("threads", "processes"), [(2, Limits.processes), (300, 1200)])
def test_a_candidate_of_many_threads_has_room_for_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, threads: int, processes: int
) -> None:
    monkeypatch.setattr(build, "_own", lambda *_: None)
    monkeypatch.setattr(resource, "getrlimit", lambda _: (8 << 20, 8 << 20))
    builder: Any = builder_of(tmp_path, threads=threads, memory_bytes=1 << 30, evaluation_timeout_s=10)
    builder.forkserver.fork.side_effect = _Forked
    with pytest.raises(_Forked):
        builder.start(SOLUTION, tmp_path, mock.Mock(), mock.Mock())
    limits = builder.forkserver.fork.call_args.kwargs["limits"]
    assert limits.processes == processes
    assert limits.cpu_seconds == 10 * max(64, threads)
    stacks = 2 * threads * (8 << 20) if threads > 64 else 0
    assert limits.memory_bytes == (1 << 30) + max(0, stacks - (1 << 30))
    assert limits.total_bytes == 3 << 30, "what is resident has the same limit"


def test_the_memory_that_a_group_leaves_bounds_a_candidate_s(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(build, "free_memory", lambda: 1 << 30)
    baselines: Any = mock.Mock(prepared=[])
    baselines.weights.block.nbytes = 1 << 40
    assert builder_of(tmp_path).memory_limit(baselines) == math.floor(0.8 * (1 << 30) + (2 << 30))


@pytest.mark.slow
def test_four_hundred_threads_run_where_three_hundred_are_timed(tmp_path: Path) -> None:
    definition = problem("return torch.relu(x)", "torch.randn(8, 8)")
    many = (
        "return torch.relu(x)",
        "from threading import Barrier, Thread\n"
        "        gate = Barrier(401)\n"
        "        threads = [Thread(target=gate.wait) for _ in range(400)]\n"
        "        [t.start() for t in threads]\n"
        "        gate.wait()\n"
        "        [t.join() for t in threads]\n"
        "        return torch.relu(x)",
    )
    settings = RefereeSettings(threads=300, compile_baseline=False, task_seconds=0)
    with Referee(settings, device=DEVICE, cache=tmp_path) as referee:
        request = EvaluationRequest(definition, [WORKLOAD], solution_of(definition, many), Level.SMOKE)
        evaluation = referee.evaluate(request)
    assert evaluation.passed, evaluation.reasons
