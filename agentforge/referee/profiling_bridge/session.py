"""A solution that passed, shown to a profiler: in the sandbox, with the device, on inputs of the referee's.

What the solution and the profiler leave is as little trusted as any candidate's words, and decides nothing.
"""

from __future__ import annotations

import json
import shutil
import signal
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from agentforge import _version
from agentforge.isolation.sandboxes import Limits, Sandbox
from agentforge.languages import CommandResult
from agentforge.languages.command import interpreter
from agentforge.schema import HarnessError, Solution

from ..baselines.baselines import Baselines
from ..baselines.prepared import PreparedWorkload
from ..candidates.build import BuildFailure, CandidateBuilder, writable_box
from ..workers.failures import WorkerFailure
from ..workers.memory.shared_memory import in_pages
from ..workers.process import Forkserver
from ..workers.worker import Worker
from .main import INPUTS, REQUESTS, WEIGHTS

_PACKAGE = Path(_version.__file__).resolve().parent
_PROCESSES, _OPEN_FILES = 1024, 1024
"""A profiler and a GPU's driver start threads and open files of their own."""
_PROFILER_BYTES = 3 << 30
"""Memory of a profiler, and of the interpreter and its libraries, which in a verdict are there before."""
_WATCH_S = 0.2


@dataclass
class Watch:
    """Waits for a program, and ends one that takes too much memory with all that it started."""

    resident_bytes: int
    exceeded: bool = False

    def __call__(self, worker: Worker, timeout_s: float) -> int | None:
        """Its exit code; None if it does not end in time."""
        deadline = time.monotonic() + timeout_s
        while (left := deadline - time.monotonic()) > 0:
            code = worker.wait(min(_WATCH_S, left))
            if code is not None:
                return code
            if worker.resident_bytes() > self.resident_bytes:
                self.exceeded = True
                return 128 + signal.SIGKILL
        return None


@dataclass(frozen=True)
class Profiled:
    """A built solution, ready to be run by another program: see `Subject`."""

    results: Path
    """Folder that the processes may write to, and find under the same name."""
    _requests: Path
    _built: Path
    _builder: CandidateBuilder
    _server: Forkserver
    _limits: Limits
    _resident_bytes: int
    _programs: tuple[Path, ...]

    def command(self, *arguments: str) -> list[str]:
        """The process that runs the solution; for arguments see `profiled_main`."""
        return [
            interpreter(),
            "-m",
            "agentforge.referee.profiling_bridge.main",
            str(self._requests),
            *arguments,
        ]

    def run(self, argv: Sequence[str], *, timeout_s: float) -> CommandResult:
        """Run a program in the sandbox; stdout and stderr come back together as stderr.

        One that takes more memory than the task explains is ended, and the last line says so.
        """
        builder, watch = self._builder, Watch(self._resident_bytes)
        with writable_box(self.results, builder.folder) as box:
            shown = (self._built, self._requests, _PACKAGE, *self._programs)
            backend = builder.backend
            done = self._server.execute(
                argv,
                cwd=self.results,
                scratch=box.scratch,
                limits=self._limits,
                box=replace(
                    box, readable=shown, devices=backend.nodes, filtered=backend.filtered, loopback=True
                ),
                timeout_s=timeout_s,
                wait=watch,
            )
        if not watch.exceeded:
            return done
        reason = f"it took more than {self._resident_bytes >> 20} MiB of memory"
        return replace(done, stderr=f"{done.stderr}\n{reason}")

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Keep all other processes with the same cache folder from profiling and timing on the device."""
        backend, cache = self._builder.backend, self._builder.cache
        with backend.lock(cache, "ncu"), backend.lock(cache):
            yield


@contextmanager
def profiled(
    solution: Solution,
    baselines: Baselines,
    builder: CandidateBuilder,
    *,
    sandbox: Sandbox,
    environment: Mapping[str, str],
    programs: Sequence[Path],
) -> Iterator[Profiled]:
    """Build a solution, or take it from the cache, and write down what its worker will be asked.

    Args:
        baselines: its heaviest workload is what the solution will run on.

    Raises:
        HarnessError: it cannot be made ready.
    """
    prepared = max(baselines.prepared, key=lambda c: (c.inputs.slot_bytes, c.workload.weight))
    backend = builder.backend
    memory = builder.memory_limit(baselines)
    limits = Limits(
        memory_bytes=backend.address_space or memory + builder.stack_bytes(),
        processes=builder.processes(_PROCESSES),
        open_files=_OPEN_FILES,
        # It writes its own copy of the inputs.
        file_bytes=Limits.file_bytes + in_pages(prepared.inputs.slot_bytes),
    )
    try:
        built, _ = builder.build(solution)
    except BuildFailure as failure:
        raise HarnessError(f"it does not build any more: {failure.reason}") from failure
    try:
        with (
            tempfile.TemporaryDirectory(prefix="profiled-", dir=builder.folder) as name,
            closing(Forkserver("profiler", sandbox, builder.folder, environment)) as server,
        ):
            requests, results = Path(name, "requests"), Path(name, "results")
            for folder in (requests.parent, requests, results):
                folder.mkdir(exist_ok=True)
                folder.chmod(0o755)
            _write_requests(requests, solution, built, baselines, prepared, builder)
            resident = memory + _PROFILER_BYTES
            yield Profiled(results, requests, built, builder, server, limits, resident, tuple(programs))
    finally:
        shutil.rmtree(built, ignore_errors=True)


def _write_requests(
    folder: Path,
    solution: Solution,
    built: Path,
    baselines: Baselines,
    prepared: PreparedWorkload,
    builder: CandidateBuilder,
) -> None:
    """What a worker needs to run the solution, as files that any user may read."""
    load = builder.load_request(solution, built, baselines.weights)
    workload = {"op": "workload", **prepared.body(), "slots": 1}
    (folder / REQUESTS).write_text(json.dumps([load, workload]))
    (folder / REQUESTS).chmod(0o644)
    _copy(baselines.weights.block.fd, folder / WEIGHTS)
    try:
        with prepared.inputs.kept(0):
            prepared.inputs.fill(0)
            _copy(prepared.inputs.content(0).fd, folder / INPUTS)
    except WorkerFailure as failure:
        raise HarnessError(f"the reference draws no inputs: {failure.reason}") from failure


def _copy(descriptor: int, target: Path) -> None:
    shutil.copyfile(f"/proc/self/fd/{descriptor}", target)
    target.chmod(0o644)
