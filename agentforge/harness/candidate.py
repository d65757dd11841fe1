"""The untrusted side of an evaluation: a solution built and started inside the sandbox."""

from __future__ import annotations

import os
import secrets
import shutil
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path, PurePosixPath
from typing import Any

import psutil

import agentforge.languages
from agentforge.config import RefereeSettings
from agentforge.languages import (
    AheadOfTimeLanguage,
    BuildResult,
    CommandResult,
    builds_at_import,
    languages,
)
from agentforge.schema import Diagnostic, EvaluationStatus, MachineError, Solution

from ._base import Box, Limits
from .bench import Bench, Course, Weights
from .compiled import CompiledCode
from .party import Floor, Party
from .process import Forkserver
from .side import CPU, DeviceSide

_FIRST_IDENTITY = 200_000
_MAX_SOURCE_BYTES = 16 << 20
_SLACK = 2 << 30
"""Address space for thread stacks, allocator arenas and libraries loaded later."""
_DEVICE_LIBRARIES = 4 << 30
"""Host memory of a GPU's driver and libraries, loaded when they are first used."""
_PRELUDES = Path(agentforge.languages.__file__).parent
"""What a solution's process may have to import of ours before it imports the solution."""
_BUILDING = threading.Lock()
"""Held while a compiler runs: a language may build several sources at once, each under its own identity."""
_identities = count(_FIRST_IDENTITY + secrets.randbelow(50_000))
"""Far from those of a referee in the next process, whose workers would seem to be ours."""


class BuildFailure(Exception):
    """The solution does not build."""

    def __init__(self, status: EvaluationStatus, reason: str, result: BuildResult) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason
        self.result = result


@dataclass
class Workshop:
    """Builds and starts one evaluation's solution in the sandbox.

    Args:
        forkserver: for candidates.
        builder: for compilers.
        floor: shared with the baselines.
        folder: temporary; solutions are built in fresh folders below it.
        cache: of built objects.
        settings: of the referee.
        side: where solutions run.
    """

    forkserver: Forkserver
    builder: Forkserver
    floor: Floor
    folder: Path
    cache: Path
    settings: RefereeSettings
    side: DeviceSide = CPU

    def __post_init__(self) -> None:
        self._compiled = CompiledCode(self.folder / f"compiled-{next(_identities)}")

    def close(self) -> None:
        """Remove what the solution compiled when it ran."""
        self._compiled.forget()

    def build(self, solution: Solution) -> tuple[Path, BuildResult]:
        """Build a solution in a fresh folder; the caller removes it.

        Raises:
            BuildFailure: with the status COMPILE_ERROR or TIMEOUT.
        """
        size = sum(len(s.content) for s in solution.sources)
        if size > _MAX_SOURCE_BYTES:
            empty = BuildResult(False, 0.0, diagnostics=(Diagnostic(message=f"{size >> 20} MiB of source"),))
            raise BuildFailure(
                EvaluationStatus.COMPILE_ERROR, f"its sources have {size >> 20} MiB; 16 are the limit", empty
            )
        folder = Path(tempfile.mkdtemp(prefix="solution-", dir=self.folder))
        folder.chmod(0o755)
        try:
            language = languages.create(solution.spec.language)
            result = language.build(
                solution, folder, cache=self.cache, run=self.run, timeout_s=self.settings.build_timeout_s,
                device=self.side.kind,
            )  # fmt: skip
        except (UnicodeError, OSError, RecursionError, MemoryError) as error:
            shutil.rmtree(folder, ignore_errors=True)
            if isinstance(error, OSError) and error.errno == 28:
                raise MachineError(
                    f"no space left for builds in {self.folder}; free some disk space"
                ) from error
            reason = f"its sources cannot be written: {type(error).__name__}"
            raise BuildFailure(EvaluationStatus.COMPILE_ERROR, reason, BuildResult(False, 0.0)) from error
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        if not result.ok:
            shutil.rmtree(folder, ignore_errors=True)
            status = EvaluationStatus.TIMEOUT if result.timed_out else EvaluationStatus.COMPILE_ERROR
            raise BuildFailure(status, _first_error(result), result)
        return folder, result

    def compile_launched(self, solution: Solution, folder: Path, launches: Any) -> BuildResult | None:
        """Compile a built solution's kernels for devices that are not there; None where its language cannot.

        Args:
            solution: that was built.
            folder: where; a copy is compiled, as the compiler may run what it compiles.
            launches: what its process says of how they were launched.

        Raises:
            BuildFailure: one compiles for none of the targets.
        """
        language = languages.create(solution.spec.language)
        if not isinstance(language, AheadOfTimeLanguage):
            return None
        with tempfile.TemporaryDirectory(prefix="ahead-", dir=self.folder) as scratch:
            copy = Path(scratch) / "solution"
            shutil.copytree(folder, copy, symlinks=True)
            Path(scratch).chmod(0o755)
            timeout = self.settings.build_timeout_s
            result = language.compile_launched(
                solution, copy, launches, cache=self.cache, run=self.run, timeout_s=timeout
            )
        if not result.ok:
            status = EvaluationStatus.TIMEOUT if result.timed_out else EvaluationStatus.COMPILE_ERROR
            raise BuildFailure(status, _first_error(result), result)
        return result

    def run(
        self,
        argv: Sequence[str],
        *,
        cwd: Path,
        timeout_s: float,
        env: Mapping[str, str] | None = None,
    ) -> CommandResult:
        """A `CommandRunner`: the compiler reads untrusted source, so it runs inside too."""
        with _BUILDING:
            return self._run_alone(argv, cwd=cwd, timeout_s=timeout_s, env=env)

    def _run_alone(
        self, argv: Sequence[str], *, cwd: Path, timeout_s: float, env: Mapping[str, str] | None
    ) -> CommandResult:
        limits = Limits(memory_bytes=4 << 30, cpu_seconds=int(timeout_s) + 1)
        # The folder is shown to the candidate afterwards; it must not own what it will run.
        with lent(cwd, self.folder) as box:
            return self.builder.execute(
                argv, cwd=cwd, scratch=box.scratch, limits=limits, box=box, timeout_s=timeout_s, env=env
            )

    def start(self, solution: Solution, folder: Path, bench: Bench, course: Course) -> Candidate:
        """Fork a worker, construct the model in it and give it a workload.

        Raises:
            PartyFailure: the verdict where that fails.
        """
        scratch = Path(tempfile.mkdtemp(prefix="scratch-", dir=self.folder))
        identity = next(_identities)
        _own(identity, scratch)
        memory = self.memory_limit(bench)
        readable = (folder, _PRELUDES, self._compiled.folder) if self._compiled.there else (folder, _PRELUDES)
        box = Box(scratch, readable=readable, identity=identity, devices=self.side.nodes)
        limits = replace(
            Limits(memory_bytes=self.side.address_space or memory),
            cpu_seconds=int(self.settings.evaluation_timeout_s * 64),
        )
        try:
            worker = self.forkserver.fork(scratch, limits=limits, box=box)
        except BaseException:
            shutil.rmtree(scratch, ignore_errors=True)
            raise
        party = Party(
            "candidate",
            worker,
            self.floor,
            call_timeout_s=self.settings.call_timeout_s,
            side=self.side,
            memory_bytes=memory + _SLACK,
        )
        candidate = Candidate(party, scratch, self._compiled)
        try:
            candidate.weights = self._load(party, solution, folder, bench.weights)
            party.configure(course.body(), course.inputs, course.outputs_bytes)
        except BaseException:
            candidate.close()
            raise
        return candidate

    def _load(self, party: Party, solution: Solution, folder: Path, weights: Weights) -> str:
        descriptor = weights.read_only()
        try:
            patience = self.settings.build_timeout_s if builds_at_import(solution) else None
            reply = party.request(self.load_request(solution, folder, weights), [descriptor], patience)
        finally:
            os.close(descriptor)
        return str(reply.get("weights", ""))[:20]

    def load_request(self, solution: Solution, folder: Path, weights: Weights) -> dict[str, Any]:
        """What asks a worker to construct a built solution's model; the weights go beside it."""
        entry = PurePosixPath(solution.entry_file)
        return {
            "op": "load",
            "folder": str(folder / entry.parent),
            "module": entry.stem,
            "class": solution.entry_class,
            "init": weights.init,
            "state": weights.state,
            "seed": weights.seed,
            "threads": self.settings.threads,
            "device": self.side.device,
            "compiled": str(self._compiled.folder) if self._compiled.there else "",
        }

    def memory_limit(self, bench: Bench) -> int:
        """Address-space growth that a candidate is granted."""
        if self.settings.memory_bytes is not None:
            return self.settings.memory_bytes
        tensors = bench.weights.block.nbytes + sum(c.inputs.nbytes + c.outputs_bytes for c in bench.courses)
        libraries = _DEVICE_LIBRARIES if self.side.remote else 0
        return libraries + int(min(8 * tensors + _SLACK, 0.8 * psutil.virtual_memory().available + _SLACK))


@contextmanager
def lent(folder: Path, below: Path) -> Iterator[Box]:
    """A box for one process that may write to `folder` and owns what is in it meanwhile.

    Args:
        folder: existing; ours again afterwards.
        below: where its scratch folder is made.
    """
    identity = next(_identities)
    with tempfile.TemporaryDirectory(prefix="scratch-", dir=below) as scratch:
        _own(identity, Path(scratch), folder, *folder.rglob("*"))
        try:
            yield Box(Path(scratch), writable=(folder,), identity=identity)
        finally:
            _own(0, folder, *folder.rglob("*"))


def _own(identity: int, *paths: Path) -> None:
    if os.geteuid() == 0:
        for path in paths:
            os.chown(path, identity, identity, follow_symlinks=False)


@dataclass
class Candidate:
    """A started solution."""

    party: Party
    scratch: Path
    compiled: CompiledCode | None = None
    """Where to leave what it compiled, for its successor."""
    weights: str = ""
    """How it got its weights: `seed`, `state_dict` or `partly`."""

    def close(self) -> None:
        """Kill it and remove what it wrote."""
        if self.compiled is not None and self.party.worker.running:
            self.party.worker.stop()
            self.compiled.collect(self.party.worker.pid, self.scratch)
        self.party.close()
        shutil.rmtree(self.scratch, ignore_errors=True)


def _first_error(result: BuildResult) -> str:
    if result.timed_out:
        return "the build did not end in time"
    for diagnostic in result.diagnostics:
        if diagnostic.severity == "error":
            where = f"{diagnostic.file}:{diagnostic.line}: " if diagnostic.file else ""
            return f"{where}{diagnostic.message}"[:1000]
    return (result.log.strip() or "the build failed and said nothing")[-1000:]
