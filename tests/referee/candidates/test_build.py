"""Where solutions are built, under which users they run, and what they may take."""

from __future__ import annotations

import errno
import math
import os
import resource
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import pytest

from agentforge.config import RefereeSettings
from agentforge.isolation import procfs
from agentforge.isolation.sandboxes import Limits
from agentforge.languages import BuildResult
from agentforge.languages.cpp.sanitizers.sanitizers import MEMORY, NotBuilt
from agentforge.referee import EvaluationRequest, Referee
from agentforge.referee.candidates import build, sanitized_builds
from agentforge.referee.candidates.build import BuildFailure, CandidateBuilder
from agentforge.referee.candidates.sanitized_builds import SanitizedBuilds
from agentforge.referee.workers.device_backend import DeviceBackend
from agentforge.schema import Diagnostic, EvaluationStatus, Level, MachineError, Solution
from agentforge.testing.language import make_solution

from ..judging import DEVICE, WORKLOAD, problem, quick_referee, solution_of

SOLUTION = make_solution("python", {"model_new.py": "pass"})


def builder_of(folder: Path, **settings: Any) -> CandidateBuilder:
    """A builder without processes."""
    return CandidateBuilder(
        mock.Mock(), mock.Mock(), mock.Mock(), folder, folder, RefereeSettings(**settings)
    )


@pytest.mark.parametrize("timed_out", [False, True])
def test_what_ran_on_a_gpu_is_not_refused_for_how_it_compiles_without_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, timed_out: bool
) -> None:
    failed = BuildResult(
        False, timed_out=timed_out, diagnostics=(Diagnostic(message="it cannot be imported: KeyError"),)
    )
    language = SimpleNamespace(compile_launched=lambda *_, **__: failed)
    monkeypatch.setattr(CandidateBuilder, "_language", lambda *_: language)
    builder = builder_of(tmp_path)
    with pytest.raises(BuildFailure):
        builder.compile_launched(SOLUTION, [])
    builder.backend = DeviceBackend("null", kind="cuda", remote=True)
    result = builder.compile_launched(SOLUTION, [])
    assert result is not None and result.ok and not result.timed_out
    (note,) = result.diagnostics
    assert note.severity == "note" and note.message == "not compiled ahead: it cannot be imported: KeyError"


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


@pytest.mark.parametrize("kind", ["link", "pipe"])
def test_a_build_leaves_files_and_folders_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    class Leaving:
        def build(self, solution: Solution, folder: Path, **_: object) -> BuildResult:
            (folder / "sub").mkdir()
            place = folder / "sub" / "k.so"
            place.symlink_to("/etc/hostname") if kind == "link" else os.mkfifo(place)
            return BuildResult(True)

    monkeypatch.setattr(CandidateBuilder, "_language", lambda *_: Leaving())
    with pytest.raises(BuildFailure, match=r"'k\.so', which is neither a file nor a folder"):
        builder_of(tmp_path).build(SOLUTION)
    assert not list(tmp_path.iterdir())


DEEP = """
extern "C" void fill(float* out) { out[0] = 1; }
"""
DIG = '"$@" || exit 1\nn=0\nwhile [ $n -lt 2000 ]; do mkdir d; cd -P d; n=$((n + 1)); done\n'


def test_folders_nested_too_deep_are_no_failure_of_the_referee(tmp_path: Path) -> None:
    """`-wrapper` runs any program."""
    files = {"model_new.py": "class ModelNew: pass", "kernel.cpp": DEEP, "dig.sh": DIG}
    with quick_referee(tmp_path) as referee:
        builder = referee._candidate_builder()
        with pytest.raises(BuildFailure) as failure:
            builder.build(make_solution("cpp", files, ("-wrapper", "/bin/sh,./dig.sh")))
        assert failure.value.status is EvaluationStatus.COMPILE_ERROR
        assert not list(builder.folder.glob("solution-*")) and not list(builder.folder.glob("scratch-*"))


def test_a_sanitizer_s_build_that_fails_is_a_build_that_is_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "solution"
    folder.mkdir()

    def broken(*_: object, **__: object) -> None:
        raise RecursionError

    monkeypatch.setattr(sanitized_builds, "build", broken)
    builds = SanitizedBuilds(mock.Mock(), builder_of(tmp_path), SOLUTION, folder)
    try:
        with pytest.raises(NotBuilt, match="RecursionError"):
            builds.folder(MEMORY)
    finally:
        builds.close()
    assert [path.name for path in tmp_path.iterdir()] == ["solution"]
