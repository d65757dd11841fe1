"""Profiles a solution that was just judged: a judge sees the counters of the very code it is shown."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path

from agentforge.languages import CommandRunner
from agentforge.profiling.classify import KERNEL_TIME_SHARE
from agentforge.schema import Classification, Definition, Finding, Metric, Solution, Workload

from .capability import Once, Refusal, Refused, availability, refusal_in
from .command import profile_command, query_command
from .convert import by_kernel, classification_of, findings_of, metrics_of
from .metrics import WANTED, existing, parse_query
from .report import KernelReport, read_report

_QUERY_S = 60.0
_PROFILE_S = 300.0
_TIMES_S = 120.0
_TIMED_CALLS = 10


@dataclass(frozen=True)
class Launch:
    """A built solution with what it is run on."""

    solution: Solution
    folder: Path
    """Where it was built."""
    definition: Definition
    workload: Workload
    own_kernels: tuple[str, ...] = ()
    """Function names, from the attestation; empty profiles every kernel."""
    latency_s: float | None = None
    """Seconds a call by the referee's clock."""


@dataclass(frozen=True)
class Observation:
    """What a profiler saw of one solution."""

    solution: str
    """Hash of the solution that was profiled."""
    metrics: tuple[Metric, ...] = ()
    findings: tuple[Finding, ...] = ()
    classification: Classification | None = None
    kernel_s: float | None = None
    """Seconds a call that its kernels run, where the profiler timed them."""


class KernelProfiler:
    """Hardware counters where the machine gives them, kernel times where it does not. Thread-safe.

    Args:
        run: starts processes. The solution's code runs in them: pass a sandbox that shows the device's files
            and the driver's libraries.
        say: told once, in a sentence, where counters are refused.
        lock: held while ncu runs: it wants the GPU alone, and one ncu at a time.
        reader: reads a report; tests pass their own.
        find: path of ncu; raises `Refused`.
    """

    def __init__(
        self,
        *,
        run: CommandRunner,
        say: Callable[[str], None] = lambda text: None,
        lock: Callable[[], AbstractContextManager[None]] = nullcontext,
        reader: Callable[[Path], tuple[KernelReport, ...]] = read_report,
        find: Callable[[], str] = availability,
    ) -> None:
        self._run = run
        self._once = Once(say)
        self._lock = lock
        self._reader = reader
        self._find = find
        self._known: frozenset[str] | None = None
        self._hopeless: Refused | None = None

    def observe(self, launch: Launch) -> Observation:
        """Profile a solution. Never raises for what the solution or the machine does.

        Counters that were refused for good (no ncu, no permission) are not asked for again.
        """
        if self._hopeless is None:
            try:
                return self._counters(launch)
            except Refused as refused:
                self._once(refused)
                if refused.kind is not Refusal.FAILED:
                    self._hopeless = refused
        return self._times(launch)

    def _counters(self, launch: Launch) -> Observation:
        ncu = self._find()
        metrics = existing(WANTED, self._query(ncu))
        with tempfile.TemporaryDirectory(prefix="agentforge-ncu-") as scratch:
            report = Path(scratch) / "report.ncu-rep"
            command = profile_command(
                ncu, _target(launch, Path(scratch)), report, kernels=launch.own_kernels, metrics=metrics
            )
            with self._lock():
                done = self._run(command, cwd=Path(scratch), timeout_s=_PROFILE_S)
            said = f"{done.stdout}\n{done.stderr}"
            if refused := refusal_in(said):
                raise refused
            if done.timed_out or not report.is_file():
                what = "took too long" if done.timed_out else _last_line(said)
                raise Refused(Refusal.FAILED, f"ncu wrote no report ({what})")
            reports = by_kernel(self._reader(report))
        return Observation(
            solution=launch.solution.hash,
            metrics=metrics_of(reports),
            findings=findings_of(reports, [s.path for s in launch.solution.sources]),
            classification=classification_of(reports),
        )

    def _query(self, ncu: str) -> frozenset[str]:
        """Base names of the chip's metrics; empty where ncu does not tell."""
        if self._known is None:
            done = self._run(query_command(ncu), cwd=Path(tempfile.gettempdir()), timeout_s=_QUERY_S)
            self._known = parse_query(done.stdout) if done.returncode == 0 else frozenset()
        return self._known

    def _times(self, launch: Launch) -> Observation:
        """Kernel times by CUPTI's activity records, which every user may read."""
        from .target import Times

        empty = Observation(solution=launch.solution.hash)
        with tempfile.TemporaryDirectory(prefix="agentforge-times-") as scratch:
            answer = Path(scratch) / "times.json"
            command = _target(launch, Path(scratch), times=answer, calls=_TIMED_CALLS)
            with self._lock():
                done = self._run(command, cwd=Path(scratch), timeout_s=_TIMES_S)
            if done.returncode != 0 or not answer.is_file():
                return empty
            try:
                times = Times.model_validate_json(answer.read_bytes())
            except ValueError:
                return empty
        kernel_s = sum(k.seconds for k in times.kernels) / times.calls
        if not kernel_s > 0:
            return empty
        metrics = [
            Metric(
                name="kernel_time", value=k.seconds / times.calls, unit="s", source="profiler", kernel=k.name
            )
            for k in times.kernels
        ]
        launches = sum(k.launches for k in times.kernels) / times.calls
        metrics.append(Metric(name="launches", value=launches, source="profiler"))
        if launch.latency_s:
            share = min(kernel_s / launch.latency_s, 1.0)
            metrics.append(Metric(name=KERNEL_TIME_SHARE, value=share, unit="1", source="profiler"))
        return replace(empty, metrics=tuple(metrics), kernel_s=kernel_s)


def _target(launch: Launch, scratch: Path, *, times: Path | None = None, calls: int = 1) -> list[str]:
    """Command line of the profiled process; its spec is written into `scratch`."""
    from .target import Spec

    spec = Spec(
        folder=str(launch.folder),
        entry_file=launch.solution.entry_file,
        entry_class=launch.solution.entry_class,
        definition=launch.definition,
        workload=launch.workload,
        calls=calls,
        times=str(times) if times else "",
    )
    path = scratch / "spec.json"
    path.write_text(spec.model_dump_json())
    return [sys.executable, "-m", "agentforge.profiling.nsight.target", str(path)]


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:300] if lines else "it said nothing"
