"""The referee: builds, runs, checks and times solutions, and trusts none of them."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from agentforge.config import RefereeSettings
from agentforge.devices import DeviceSpec, Fallback, with_fallbacks
from agentforge.isolation import linux
from agentforge.isolation.sandboxes import Sandbox, sandboxes
from agentforge.isolation.scratch import Scratch
from agentforge.languages import CommandRunner
from agentforge.languages.cpp.disassembly import machine_code, object_hash
from agentforge.languages.normal import of_compiled
from agentforge.problems.failures import KnownFailures
from agentforge.schema import (
    Definition,
    Evaluation,
    EvaluationStatus,
    HarnessError,
    MachineError,
    ReasonCode,
    Solution,
    StageResult,
    TargetError,
    TimeEnded,
    UsageError,
    Workload,
    content_hash,
)

from ._base import EvaluationRequest, OnStage, Subject
from .baselines.baselines import Baselines
from .candidates.build import BuildFailure, CandidateBuilder
from .candidates.jit_cache import calls_compiler
from .candidates.sanitizer_pool import SanitizerPool
from .checks import CheckContext
from .failed_baselines import without_failed
from .pipeline import EvaluationPipeline
from .profiling_bridge.session import profiled
from .result import Findings, evaluation
from .timing.exclusive_run import ExclusiveRun, one_thread
from .workers.client import WorkerClient
from .workers.device_backend import backend_for
from .workers.environment import baseline_cache, compiler_environment, worker_environment
from .workers.failures import WorkerFailure
from .workers.forkserver import BASELINES, CANDIDATE, COMPILED, COMPILER, COMPILING, EAGER, TORCH
from .workers.process import Forkserver


def choose_sandbox(name: str, options: Mapping[str, Any] | None = None) -> Sandbox:
    """The sandbox of that name, or for `auto` the first that works here: plug-ins, then the strongest.

    Raises:
        MachineError: it does not work here.
    """
    if name != "auto":
        sandbox = sandboxes.create(name, options=options)
        availability = sandbox.available()
        if not availability.ok:
            raise MachineError(availability.detail)
        return sandbox
    for candidate, _ in sandboxes.working():
        sandbox = sandboxes.create(candidate)
        if sandbox.available().ok:
            return sandbox
    raise MachineError("no sandbox works on this machine")


class Referee:
    """Judges solutions. Not thread-safe; two processes may each have one.

    The baselines of the last definition stay warm until another definition, `release` or `close`.
    """

    def __init__(self, settings: RefereeSettings, *, device: DeviceSpec, cache: Path) -> None:
        self.device = with_fallbacks(device, cache)
        self._backend = backend_for(self.device)
        # On a device, one thread launches all work. Other threads of torch would only spin.
        self.settings = settings.model_copy(update={"threads": 1}) if self._backend.remote else settings
        weak = settings.sandbox == "auto" and Fallback.WEAK_SANDBOX in self.device.fallbacks
        self.sandbox = choose_sandbox("rlimits" if weak else settings.sandbox, settings.sandbox_options)
        self._exclusive = ExclusiveRun()
        self._cache = Path(cache).absolute()
        self._folder: Path | None = None
        self._scratch: Scratch | None = None
        self._closed_to_others = False
        """This process's memory and descriptors, to candidates of the same user."""
        self._torch: Forkserver | None = None
        self._build_server: Forkserver | None = None
        self._servers: dict[str, Forkserver] = {}
        """By kind, forked from `_torch` when first needed."""
        self._sanitizer_pool: SanitizerPool | None = None
        self._baselines: Baselines | None = None
        self._baselines_key: tuple[object, ...] = ()

    # -- life

    def __enter__(self) -> Self:
        self._open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _open(self) -> None:
        if self._folder is not None:
            return
        try:
            self._scratch = Scratch("referee")
            folder = self._folder = self._scratch.path
            folder.chmod(0o711)
            if os.geteuid() != 0 and not self._hides_processes and linux.is_dumpable():
                linux.set_dumpable(False)
                self._closed_to_others = True
            self._cache.mkdir(parents=True, exist_ok=True)
            environment = self._environment()
            self._torch = Forkserver(TORCH, None, folder, environment)
            self._build_server = Forkserver("builder", self.sandbox, folder, environment)
            self._sanitizer_pool = SanitizerPool(self.sandbox, folder, environment)
        except OSError as error:
            self.close()
            raise HarnessError(
                f"the referee cannot start ({error}); see that the temporary folder (TMPDIR) and "
                f"{self._cache} are writable and not full"
            ) from error

    @property
    def _hides_processes(self) -> bool:
        return bool(getattr(self.sandbox, "hides_processes", False))

    def release(self) -> None:
        """End the warm baseline workers."""
        if self._baselines is not None:
            self._baselines.close()
        self._baselines = None

    def close(self) -> None:
        """End every process, remove every temporary file; safe to call twice."""
        self.release()
        for server in (*self._servers.values(), self._torch, self._build_server, self._sanitizer_pool):
            if server is not None:
                server.close()
        self._servers = {}
        self._torch = self._build_server = self._sanitizer_pool = None
        if self._scratch is not None:
            self._scratch.close()
        self._folder = self._scratch = None
        if self._closed_to_others:
            linux.set_dumpable(True)
        self._closed_to_others = False

    # -- workers

    def _spawn(self, definition: str, name: str, ahead: bool) -> WorkerClient:
        assert self._folder is not None
        home = self._folder / "home"
        home.mkdir(exist_ok=True)
        server = self._server(COMPILED if name in self._backend.baselines else EAGER)
        worker = server.fork(home, background=ahead, env=baseline_cache(self._cache, definition))
        exclusive = ExclusiveRun() if ahead else self._exclusive
        timeout = max(300.0, self.settings.call_timeout_s)
        return WorkerClient(name, worker, exclusive, call_timeout_s=timeout, backend=self._backend)

    def _environment(self) -> dict[str, str]:
        """The variables of every worker."""
        assert self._folder is not None
        return worker_environment(self.settings.threads, self._folder, self._backend.environment)

    def _server(self, kind: str) -> Forkserver:
        """The forkserver of a kind, which may not have started yet."""
        assert self._torch is not None and self._folder is not None
        if kind not in self._servers:
            self._servers[kind] = Forkserver(
                kind,
                self.sandbox if kind in (CANDIDATE, COMPILING) else None,
                self._folder,
                compiler_environment(self._cache) if kind == COMPILER else {},
                # Otherwise an ordinary user's baselines are read in another way than the candidate.
                open_memory=kind in BASELINES and self._hides_processes,
                parent=self._server(COMPILER) if kind in (COMPILED, COMPILING) else self._torch,
            )
        return self._servers[kind]

    def _warm(self, request: EvaluationRequest) -> Baselines:
        """The warm baselines. The compiler starts meanwhile; the checks do not need it."""
        if self._backend.gpu is not None and self.settings.compile_baseline:
            self._server(COMPILER).start()  # a machine with a GPU has processors enough to do it now
        baselines = self.baselines(request.definition, request.workloads)
        if baselines.missing(request.level):
            self._server(COMPILER).start()
        return baselines

    def _new_baselines(
        self, definition: Definition, workloads: Sequence[Workload], origin: Baselines | None = None
    ) -> Baselines:
        task, spawn = (definition, workloads, self.settings), partial(self._spawn, definition.hash)
        make = partial(Baselines, *task, spawn, backend=self._backend, origin=origin)
        known, later = KnownFailures(self._cache, self.device), origin is not None
        return without_failed(make, known, *task, self._backend.gpu, later=later)

    def baselines(self, definition: Definition, workloads: Sequence[Workload]) -> Baselines:
        """The warm baselines of a definition.

        Raises:
            TargetError: the reference does not run, or is random.
        """
        key = (definition.hash, tuple(w.hash for w in workloads))
        alive = self._baselines is not None and all(
            p.worker.running for p in self._baselines.clients.values()
        )
        if self._baselines is None or not alive or key != self._baselines_key:
            self.release()
            self._baselines = self._new_baselines(definition, workloads)
            self._baselines_key = key
        return self._baselines

    # -- evaluation

    def evaluate(self, request: EvaluationRequest, *, progress: OnStage | None = None) -> Evaluation:
        """See `Evaluator`."""
        if not request.workloads:
            raise UsageError("an evaluation needs at least one workload")
        if request.solution.definition != request.definition.hash:
            raise UsageError(
                f"the solution {request.solution.name} belongs to another definition; read it again for "
                f"this one"
            )
        start, findings = time.perf_counter(), Findings()
        if self._folder is None:
            self._open()
            took = time.perf_counter() - start
            findings.stages.append(StageResult(name="open", status=EvaluationStatus.PASSED, seconds=took))
        with one_thread():
            try:
                self._examine(request, progress, findings)
            except WorkerFailure as failure:
                findings.fail(failure.status, failure.reason, failure.code)
                if failure.starved:
                    findings.doubt(ReasonCode.STARVED, "other programs may have had the processors meanwhile")
                findings.log = findings.log or failure.log
            except BuildFailure as failure:
                findings.fail(failure.status, failure.reason)
                findings.diagnostics = failure.result.diagnostics
                findings.log = failure.result.log[-8000:]
            except (TargetError, UsageError, MachineError, TimeEnded):
                self.release()
                raise
            except Exception as error:
                # The referee itself failed: this says nothing about the candidate, and no worker is reused.
                text = f"the referee failed: {type(error).__name__}: {error}"[:1000]
                findings.fail(EvaluationStatus.HARNESS_ERROR, text)
                self._restart()
            except BaseException:
                # Interrupted in the middle of an exchange: no worker can be used again.
                self.release()
                raise
        seconds = time.perf_counter() - start
        return evaluation(findings, request, self.device, self.sandbox.name, seconds)

    def build(self, solution: Solution) -> None:
        """Compile a solution into the cache; see `Builder`. Not while one is evaluated."""
        self._open()
        builder = self._candidate_builder()
        with suppress(BuildFailure):
            folder, _ = builder.build(solution)
            shutil.rmtree(folder, ignore_errors=True)

    def machine_code(self, solution: Solution) -> str:
        """See `Disassembler`."""
        try:
            return self._of_built(solution, machine_code)
        except BuildFailure as failure:
            return f"it does not build: {failure.reason}"

    def machine_code_hash(self, solution: Solution) -> str:
        """See `Disassembler`."""
        if solution.spec.language != "cpp":
            return ""  # what a GPU runs is not in the objects that a process loads
        try:
            loaded = self._of_built(solution, object_hash)
        except BuildFailure:
            return ""
        return content_hash([loaded, of_compiled(solution)]) if loaded else ""

    def _of_built(self, solution: Solution, read: Callable[[Path, CommandRunner], str]) -> str:
        self._open()
        builder = self._candidate_builder()
        folder, _ = builder.build(solution)
        try:
            return read(folder, builder.run)
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    @contextmanager
    def subject(
        self,
        definition: Definition,
        workloads: Sequence[Workload],
        solution: Solution,
        *,
        programs: Sequence[Path] = (),
    ) -> Iterator[Subject]:
        """See `Presenter`. Not while one is evaluated."""
        self._open()
        with profiled(
            solution,
            self.baselines(definition, workloads),
            self._candidate_builder(),
            sandbox=self.sandbox,
            environment=self._environment(),
            programs=programs,
        ) as ready:
            yield ready

    def _candidate_builder(self, solution: Solution | None = None) -> CandidateBuilder:
        assert self._build_server is not None and self._folder is not None
        compiles = solution is not None and calls_compiler(solution)
        return CandidateBuilder(
            self._server(COMPILING if compiles else CANDIDATE),
            self._build_server,
            self._exclusive,
            self._folder,
            self._cache,
            self.settings,
            self._backend,
        )

    def _restart(self) -> None:
        try:
            self.close()
        finally:
            with suppress(HarnessError):  # the next call tries again, and says why
                self._open()

    def _examine(self, request: EvaluationRequest, progress: OnStage | None, findings: Findings) -> None:
        builder = self._candidate_builder(request.solution)
        try:
            EvaluationPipeline(
                CheckContext(request, self.settings, self.device, builder, findings),
                warm=lambda: self._warm(request),
                fresh=lambda: self._new_baselines(request.definition, request.workloads, self._baselines),
                sanitizer_pool=self._sanitizer_pool,
                progress=progress,
            ).run()
        finally:
            builder.close()
