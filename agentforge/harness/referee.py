"""The referee: builds, runs, checks and times solutions, and trusts none of them."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from agentforge.config import RefereeSettings
from agentforge.devices import DeviceSpec
from agentforge.schema import (
    Definition,
    Evaluation,
    EvaluationStatus,
    HarnessError,
    Level,
    MachineError,
    Solution,
    TargetError,
    UsageError,
    Workload,
)

from ._base import Sandbox, Subject, sandboxes
from .bench import Bench
from .candidate import BuildFailure, Workshop
from .examination import Examination, Progress
from .laboratory import Laboratory
from .party import Floor, Party, PartyFailure
from .process import Forkserver, baseline_cache, worker_environment
from .profiled import profiled
from .side import side_of
from .timing import one_thread
from .verdict import Findings, evaluation

_FOLDER, _LEFTOVER_S = "agentforge-referee-", 3600


def choose_sandbox(name: str) -> Sandbox:
    """The sandbox of that name, or for `auto` the strongest that works here.

    Raises:
        MachineError: it does not work here.
    """
    if name != "auto":
        sandbox = sandboxes.create(name)
        availability = sandbox.available()
        if not availability.ok:
            raise MachineError(availability.detail)
        return sandbox
    for candidate in sandboxes.names():
        sandbox = sandboxes.create(candidate)
        if sandbox.available().ok:
            return sandbox
    raise MachineError("no sandbox works on this machine")


def remove_leftovers() -> None:
    """Remove the temporary folders of referees whose process was killed."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_FOLDER}*-*"):
        owner = folder.name.removeprefix(_FOLDER).split("-")[0]
        with suppress(OSError):
            # An old one: in another container with the same /tmp its owner may live unseen by us.
            old = time.time() - folder.stat().st_mtime > _LEFTOVER_S
            if old and owner.isdigit() and not Path(f"/proc/{owner}").exists():
                shutil.rmtree(folder, ignore_errors=True)


class Referee:
    """Judges solutions. Not thread-safe: one evaluation at a time; two processes may each have one.

    Keeps the baseline workers of the last definition warm, since a torch.compile baseline takes long to
    start; another definition, `release` or `close` ends them. Workers are forked from two forkservers with
    torch imported: one for trusted baselines, one, inside the sandbox, for candidates.

    Args:
        settings: how it works.
        device: what the measurements are taken on.
        cache: folder for built objects and compiler caches.
    """

    def __init__(self, settings: RefereeSettings, *, device: DeviceSpec, cache: Path) -> None:
        self.settings = settings
        self.device = device
        self._side = side_of(device)
        self.sandbox = choose_sandbox(settings.sandbox)
        self._floor = Floor()
        self._cache = Path(cache).absolute()
        self._folder: Path | None = None
        self._trusted: Forkserver | None = None
        self._untrusted: Forkserver | None = None
        self._builder: Forkserver | None = None
        self._laboratory: Laboratory | None = None
        self._bench: Bench | None = None
        self._bench_key: tuple[object, ...] = ()

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
        remove_leftovers()
        folder = Path(tempfile.mkdtemp(prefix=f"{_FOLDER}{os.getpid()}-"))
        folder.chmod(0o711)
        self._folder = folder
        try:
            self._cache.mkdir(parents=True, exist_ok=True)
            threads = self.settings.threads
            environment = worker_environment(threads, folder, self._side.environment)
            self._trusted = Forkserver(
                "baseline", None, folder, {**environment, **baseline_cache(self._cache)}
            )
            self._untrusted = Forkserver("candidate", self.sandbox, folder, environment, self._side.nodes)
            self._builder = Forkserver("builder", self.sandbox, folder, environment)
            self._laboratory = Laboratory(self.sandbox, folder, environment)
        except OSError as error:
            self.close()
            raise HarnessError(
                f"the referee cannot start ({error}); see that {folder.parent} is writable"
            ) from error

    def release(self) -> None:
        """End the warm baseline workers."""
        if self._bench is not None:
            self._bench.close()
        self._bench = None

    def close(self) -> None:
        """End every process, remove every temporary file; safe to call twice."""
        self.release()
        for server in (self._trusted, self._untrusted, self._builder, self._laboratory):
            if server is not None:
                server.close()
        self._trusted = self._untrusted = self._builder = self._laboratory = None
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
        self._folder = None

    # -- parties

    def _spawn(self, name: str) -> Party:
        assert self._trusted is not None and self._folder is not None
        home = self._folder / "home"
        home.mkdir(exist_ok=True)
        worker = self._trusted.fork(home)
        timeout = max(300.0, self.settings.call_timeout_s)
        return Party(name, worker, self._floor, call_timeout_s=timeout, side=self._side)

    def _new_bench(self, definition: Definition, workloads: Sequence[Workload]) -> Bench:
        return Bench(definition, workloads, self.settings, self._spawn, side=self._side)

    def bench(self, definition: Definition, workloads: Sequence[Workload]) -> Bench:
        """The warm baselines of a definition.

        Raises:
            TargetError: the reference does not run, or is random.
        """
        key = (definition.hash, tuple(w.hash for w in workloads))
        alive = self._bench is not None and all(p.worker.running for p in self._bench.parties.values())
        if self._bench is None or not alive or key != self._bench_key:
            self.release()
            self._bench = self._new_bench(definition, workloads)
            self._bench_key = key
        return self._bench

    # -- evaluation

    def evaluate(
        self,
        definition: Definition,
        workloads: Sequence[Workload],
        solution: Solution,
        *,
        level: Level = Level.QUICK,
        sol_s: float | None = None,
        progress: Progress | None = None,
    ) -> Evaluation:
        """Judge one solution.

        Args:
            definition: the contract.
            workloads: at least one.
            solution: of that definition.
            level: `quick` is never `verified`.
            sol_s: speed-of-light seconds of one call (weighted mean over the workloads), where known.
            progress: told of each stage as it begins.

        Raises:
            UsageError: the solution is of another definition, or there are no workloads.
            TargetError: the reference does not run, or is random.
            MachineError: this machine lacks something, e.g. a compiler.
        """
        if not workloads:
            raise UsageError("an evaluation needs at least one workload")
        if solution.definition != definition.hash:
            raise UsageError(
                f"the solution {solution.name} is of another definition; read it again for this one"
            )
        start = time.perf_counter()
        self._open()
        findings = Findings()
        with one_thread():
            try:
                self._examine(definition, workloads, solution, level, sol_s, progress, findings)
            except PartyFailure as failure:
                findings.status = failure.status
                findings.reasons.append(failure.reason)
                findings.log = findings.log or failure.log
            except BuildFailure as failure:
                findings.status = failure.status
                findings.reasons.append(failure.reason)
                findings.diagnostics = failure.result.diagnostics
                findings.log = failure.result.log[-8000:]
            except (TargetError, UsageError, MachineError):
                self.release()
                raise
            except Exception as error:
                # The referee itself failed: nothing is said about the candidate, and nothing is reused.
                findings.status = EvaluationStatus.HARNESS_ERROR
                findings.reasons.append(f"the referee failed: {type(error).__name__}: {error}"[:1000])
                self._restart()
            except BaseException:
                # Interrupted in the middle of an exchange: no worker can be used again.
                self.release()
                raise
        seconds = time.perf_counter() - start
        return evaluation(
            findings, definition, workloads, solution, level, self.device, self.sandbox.name, seconds
        )

    def build(self, solution: Solution) -> None:
        """Compile a solution into the cache; see `Builder`. Not while one is evaluated."""
        self._open()
        workshop = self._workshop()
        with suppress(BuildFailure):
            folder, _ = workshop.build(solution)
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
        assert self._folder is not None
        with profiled(
            solution,
            self.bench(definition, workloads),
            self._workshop(),
            sandbox=self.sandbox,
            environment=worker_environment(self.settings.threads, self._folder, self._side.environment),
            programs=programs,
        ) as ready:
            yield ready

    def _workshop(self) -> Workshop:
        assert self._untrusted is not None and self._builder is not None and self._folder is not None
        return Workshop(
            self._untrusted, self._builder, self._floor, self._folder, self._cache, self.settings, self._side
        )

    def _restart(self) -> None:
        try:
            self.close()
        finally:
            self._open()

    def _examine(
        self,
        definition: Definition,
        workloads: Sequence[Workload],
        solution: Solution,
        level: Level,
        sol_s: float | None,
        progress: Progress | None,
        findings: Findings,
    ) -> None:
        workshop = self._workshop()
        fresh: Callable[[], Bench] = lambda: self._new_bench(definition, workloads)  # noqa: E731
        try:
            Examination(
                definition=definition,
                workloads=workloads,
                solution=solution,
                level=level,
                settings=self.settings,
                device=self.device,
                workshop=workshop,
                laboratory=self._laboratory,
                warm=lambda: self.bench(definition, workloads),
                fresh=fresh,
                cache=self._cache,
                sol_s=sol_s,
                findings=findings,
                progress=progress,
            ).run()
        finally:
            workshop.close()
