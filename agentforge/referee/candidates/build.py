"""Builds and starts solutions inside the sandbox."""

from __future__ import annotations

import errno
import math
import os
import resource
import secrets
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path, PurePosixPath
from typing import Any

import agentforge.languages
from agentforge.config import RefereeSettings
from agentforge.isolation import procfs
from agentforge.isolation.sandboxes import Box, Limits
from agentforge.isolation.scratch import readable_by_all, remove
from agentforge.languages import (
    AheadOfTimeLanguage,
    BuildResult,
    CommandResult,
    Language,
    builds_at_import,
    language_info,
    languages,
)
from agentforge.limits import free_memory
from agentforge.schema import Diagnostic, EvaluationStatus, MachineError, Solution

from ..baselines.baselines import Baselines
from ..baselines.prepared import PreparedWorkload
from ..baselines.sealed_weights import Weights
from ..timing.exclusive_run import ExclusiveRun
from ..workers.client import WorkerClient
from ..workers.device_backend import CPU, DeviceBackend
from ..workers.environment import inductor_folder
from ..workers.forkserver import COMPILING
from ..workers.headers import header_folder
from ..workers.process import Forkserver
from .candidate import Candidate
from .jit_cache import CompiledCode

_MAX_SOURCE_BYTES = 16 << 20
_SLACK = 2 << 30
"""Address space for thread stacks, allocator arenas and libraries loaded later."""
_STACK = 8 << 20
"""Bytes of a thread's stack if the user's are not limited."""
_PER_THREAD, _BUSY = 4, 64
"""Processes and threads that a candidate may have for each thread that is timed, beyond the least number; and
processors that it may keep busy all the time."""
_DEVICE_LIBRARIES = 4 << 30
"""Host memory of a GPU's driver and libraries, loaded when they are first used."""
_PRELUDES = Path(agentforge.languages.__file__).parent
"""Folder of this package's modules that a solution's process may import before the solution."""
_BUILDING = threading.Lock()
"""Held while a compiler runs: a language may build several sources at once, each under its own identity."""
_numbers = count(secrets.randbelow(50_000))
"""Of this process's workers. They begin far from those of another referee process, whose workers would look
like this one's."""
_OF_MACHINE = (errno.EPERM, errno.EROFS, errno.EDQUOT, errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EIO)
"""Errors of a build folder that no source can cause."""


class BuildFailure(Exception):
    """The solution does not build."""

    def __init__(self, status: EvaluationStatus, reason: str, result: BuildResult) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason
        self.result = result


@dataclass
class CandidateBuilder:
    """Builds and starts one evaluation's solution in the sandbox.

    Args:
        folder: temporary; solutions are built in fresh folders below it.
    """

    forkserver: Forkserver
    builder: Forkserver
    exclusive: ExclusiveRun
    folder: Path
    cache: Path
    settings: RefereeSettings
    backend: DeviceBackend = CPU
    deadline: float = math.inf
    """By `time.monotonic()`: its candidates and compilers are not waited for any longer."""
    compiled: CompiledCode = field(init=False)
    """What the solution's processes compiled until now, those of `like` included."""

    def __post_init__(self) -> None:
        self.compiled = CompiledCode(self.folder / f"compiled-{next(_numbers)}")

    def like(self, settings: RefereeSettings, forkserver: Forkserver | None = None) -> CandidateBuilder:
        """A builder for the same solution with other settings, and perhaps in other processes."""
        other = replace(self, settings=settings, forkserver=forkserver or self.forkserver)
        other.compiled = self.compiled
        return other

    @property
    def compiles(self) -> bool:
        """Whether the solution's processes have a compiler that is ready: it seems to call torch.compile."""
        return self.forkserver.kind == COMPILING

    @property
    def _call_timeout_s(self) -> float:
        """Any call may be the first one of its kind, and compile as long as a baseline's may."""
        call, compiling = self.settings.call_timeout_s, self.settings.compile_timeout_s
        return max(call, compiling) if self.compiles else call

    def lock(
        self, until: float | None = None, progress: Callable[[str], None] | None = None
    ) -> AbstractContextManager[None]:
        """Keep other timings and profilers off the device; see `device_lock`."""
        return self.backend.lock(self.cache, until=until, progress=progress)

    def close(self) -> None:
        """Remove what the solution compiled when it ran."""
        self.compiled.forget()

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
            language = self._language(solution)
            result = language.build(
                solution, folder, cache=self.cache, run=self.run, timeout_s=self.settings.build_timeout_s,
                device=self.backend.kind,
            )  # fmt: skip
            _refuse_links(folder)
        except (UnicodeError, OSError, RecursionError, MemoryError) as error:
            shutil.rmtree(folder, ignore_errors=True)
            if isinstance(error, OSError) and error.errno == errno.ENOSPC:
                raise MachineError(
                    f"no space left for builds in {self.folder}; free some disk space"
                ) from error
            if isinstance(error, OSError) and error.errno in _OF_MACHINE:
                raise MachineError(f"the folder {self.folder} cannot be used for builds: {error}") from error
            reason = f"its sources cannot be written: {type(error).__name__}"
            raise BuildFailure(EvaluationStatus.COMPILE_ERROR, reason, BuildResult(False, 0.0)) from error
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        if not result.ok:
            shutil.rmtree(folder, ignore_errors=True)
            status = EvaluationStatus.TIMEOUT if result.timed_out else EvaluationStatus.COMPILE_ERROR
            raise BuildFailure(status, _first_error(result), result)
        readable_by_all(folder)
        return folder, result

    def _language(self, solution: Solution) -> Language:
        name = solution.spec.language
        return languages.create(name, options=self.settings.language_options.get(name))

    def compile_launched(self, solution: Solution, launches: Any) -> BuildResult | None:
        """Compile a built solution's kernels for devices that this machine lacks; None if its language
        cannot.

        On a GPU they ran already, and the builder's sandbox has no GPU: a failure there is only a note.

        Raises:
            BuildFailure: one compiles for none of the targets.
        """
        language = self._language(solution)
        if not isinstance(language, AheadOfTimeLanguage):
            return None
        timeout = self.settings.build_timeout_s
        result = language.compile_launched(
            solution, self.folder, launches, cache=self.cache, run=self.run, timeout_s=timeout
        )
        if self.backend.kind == "cuda":
            return result.as_notes()
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
        background: bool = False,
    ) -> CommandResult:
        """A `CommandRunner`: the compiler reads untrusted source, so it runs inside too."""
        with _BUILDING, writable_box(cwd, self.folder) as box:
            timeout_s = max(1.0, min(timeout_s, self.deadline - time.monotonic()))
            limits = Limits(memory_bytes=4 << 30, total_bytes=8 << 30, cpu_seconds=int(timeout_s) + 1)
            return self.builder.execute(
                argv, cwd=cwd, scratch=box.scratch, limits=limits, box=box, timeout_s=timeout_s, env=env,
                background=background,
            )  # fmt: skip

    def start(
        self, solution: Solution, folder: Path, baselines: Baselines, prepared: PreparedWorkload
    ) -> Candidate:
        """Fork a worker, construct the model in it and give it a workload.

        Raises:
            WorkerFailure: the verdict if that fails.
        """
        self.compiled.update()
        scratch = Path(tempfile.mkdtemp(prefix="scratch-", dir=self.folder))
        identity = _next_identity()
        _own(identity, scratch)
        memory = self.memory_limit(baselines)
        ready = self._ready_code(baselines)
        readable = (folder, _PRELUDES, *ready, *([self.compiled.folder] if self.compiled.there else []))
        box = Box(scratch, readable=readable, identity=identity, devices=self.backend.nodes)
        box = replace(box, filtered=self.backend.filtered)
        total = memory + _SLACK if self.backend.memory_limited else 0
        limits = Limits(
            memory_bytes=self.backend.address_space or memory + self.stack_bytes(),
            total_bytes=total,
            processes=self.processes(Limits.processes),
            cpu_seconds=int(self.settings.evaluation_timeout_s * max(_BUSY, self.settings.threads)),
        )
        try:
            worker = self.forkserver.fork(scratch, limits=limits, box=box)
        except BaseException:
            shutil.rmtree(scratch, ignore_errors=True)
            raise
        worker.channel.deadline = self.deadline
        client = WorkerClient(
            "candidate",
            worker,
            self.exclusive,
            call_timeout_s=self._call_timeout_s,
            backend=self.backend,
            memory_bytes=memory + _SLACK,
            emulated=isinstance(languages.create(solution.spec.language), AheadOfTimeLanguage),
        )
        candidate = Candidate(client, scratch, self.compiled)
        try:
            candidate.weights = self._load(client, solution, folder, baselines)
            client.configure(prepared.body(), prepared.inputs, prepared.outputs_bytes)
        except BaseException:
            candidate.close()
            raise
        return candidate

    def _ready_code(self, baselines: Baselines) -> list[Path]:
        """What a solution that calls the compiler can read: precompiled headers, and what the compiled
        baselines compiled."""
        if not self.compiles:
            return []
        self.forkserver.ready()
        own = inductor_folder(self.cache, baselines.definition.hash)
        folders = header_folder(self.cache), own
        return [folder for folder in folders if folder.is_dir()]

    def _load(self, client: WorkerClient, solution: Solution, folder: Path, baselines: Baselines) -> str:
        body = self.load_request(solution, folder, baselines.weights)
        if self.compiles:
            ready = inductor_folder(self.cache, baselines.definition.hash)
            body |= {"ready": str(ready), "ready_before": baselines.compiled_at}
        sanitizable = language_info(solution.spec.language).sanitizers
        if sanitizable and baselines.definition.policy != "anything-faster":
            body["lookups"] = str(folder)
        descriptor = baselines.weights.read_only()
        try:
            patience = self.settings.build_timeout_s if builds_at_import(solution) else None
            reply = client.request(body, [descriptor], patience)
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
            "device": self.backend.device,
            "events": self.backend.events,
            "compiled": str(self.compiled.folder) if self.compiled.there else "",
        }

    def memory_limit(self, baselines: Baselines) -> int:
        """Address-space growth that a candidate is granted."""
        if self.settings.memory_bytes is not None:
            return self.settings.memory_bytes
        tensors = baselines.weights.block.nbytes + sum(
            c.inputs.nbytes + c.outputs_bytes for c in baselines.prepared
        )
        libraries = _DEVICE_LIBRARIES if self.backend.remote else 0
        return libraries + int(min(8 * tensors + _SLACK, 0.8 * free_memory() + _SLACK))

    def processes(self, least: int) -> int:
        """Processes and threads that a candidate may have; `least` of them in any case."""
        return max(least, _PER_THREAD * self.settings.threads)

    def stack_bytes(self) -> int:
        """Address space for the stacks of two pools of the threads that are timed, as torch and a kernel may
        have, beyond what `_SLACK` has for them."""
        each = resource.getrlimit(resource.RLIMIT_STACK)[0]
        each = _STACK if each == resource.RLIM_INFINITY else each
        return max(0, 2 * self.settings.threads * each - _SLACK // 2)


@contextmanager
def writable_box(folder: Path, below: Path) -> Iterator[Box]:
    """A box for one process, which may write to `folder` and owns its files until the context ends.

    What cannot be read afterwards, because it is nested too deep, is removed with all that is in `folder`.
    """
    identity = _next_identity()
    scratch = Path(tempfile.mkdtemp(prefix="scratch-", dir=below))
    try:
        _own(identity, scratch, folder, *folder.rglob("*"))
        yield Box(scratch, writable=(folder,), identity=identity)
    finally:
        remove(scratch)
        try:
            _own(0, folder, *folder.rglob("*"))
        except (OSError, RecursionError):
            for path in folder.iterdir():
                remove(path)
            _own(0, folder)


def _refuse_links(folder: Path) -> None:
    """A built solution is read and copied outside of the sandbox.

    Raises:
        BuildFailure: it has something other than folders and regular files.
    """
    for path in folder.rglob("*"):
        if path.is_symlink() or not (path.is_dir() or path.is_file()):
            reason = f"its build left {path.name[:100]!r}, which is neither a file nor a folder"
            raise BuildFailure(EvaluationStatus.COMPILE_ERROR, reason, BuildResult(False))


def _next_identity() -> int:
    """A user id for one worker, which counts if this process is root.

    Raises:
        MachineError: root has no other ids here.
    """
    ids = procfs.spare_ids()
    if ids:
        return ids[next(_numbers) % len(ids)]
    if os.geteuid() == 0:
        raise MachineError(
            "root has no other user ids in this container: map more of them, or run it as another user"
        )
    return 0


def _own(identity: int, *paths: Path) -> None:
    if os.geteuid() == 0:
        for path in paths:
            os.chown(path, identity, identity, follow_symlinks=False)


def _first_error(result: BuildResult) -> str:
    if result.timed_out:
        return "the build did not end in time"
    for diagnostic in result.diagnostics:
        if diagnostic.severity == "error":
            where = f"{diagnostic.file}:{diagnostic.line}: " if diagnostic.file else ""
            return f"{where}{diagnostic.message}"[:1000]
    return (result.log.strip() or "the build failed and said nothing")[-1000:]
