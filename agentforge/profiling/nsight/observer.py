"""Profile an evaluated solution, so that a judge sees the counters of the code that it is shown."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from agentforge.languages.command import interpreter, run_command
from agentforge.languages.untrusted import read_regular
from agentforge.referee import Presenter, Subject
from agentforge.schema import (
    AgentForgeError,
    Classification,
    Definition,
    Evaluation,
    Finding,
    Metric,
    Solution,
    Workload,
)
from agentforge.visible import first_line

from .capability import (
    NONE_PROFILED,
    UNKNOWN_METRIC,
    Refusal,
    RefusalReporter,
    Refused,
    available_ncu,
    error_line,
    install_folders,
    refusal_in,
)
from .command import profile_command, query_command, read_command
from .convert import by_kernel, classification_of, findings_of, metrics_of
from .metrics import WANTED, existing, parse_query
from .report import KernelReport, Reading

_QUERY_S = 60.0
_PROFILE_S = 300.0
_READ_S = 60.0
_TIMES_S = 120.0
_MOST_BYTES = 16 << 20
_MOST_TIMED, _MOST_NAME = 8, 160
"""Maximum number of timed kernels, and characters of their names: templates spell out all their arguments."""


@dataclass(frozen=True)
class Observation:
    """A profiler's observation of one solution."""

    solution: str
    """Hash of the profiled solution."""
    metrics: tuple[Metric, ...] = ()
    findings: tuple[Finding, ...] = ()
    classification: Classification | None = None
    kernel_s: float | None = None
    """Seconds per call in which its kernels run, if the profiler timed them."""


class NsightObserver:
    """Reads hardware counters if the machine allows it, otherwise kernel times.

    Args:
        warn: called once with a sentence if counters are refused.
    """

    def __init__(self, presenter: Presenter, warn: Callable[[str], None]) -> None:
        self._presenter = presenter
        self._report = RefusalReporter(warn)
        self._ncu = ""
        self._known: frozenset[str] | None = None
        self._refused_for_good = False
        self._seen = False
        """True once counters were read."""
        self._last: Observation | None = None

    def observe_evaluated(
        self,
        definition: Definition,
        workloads: Sequence[Workload],
        solution: Solution,
        evaluation: Evaluation,
    ) -> Observation:
        """Profile a solution; one that was evaluated at `quick` and then at `full` is profiled once.

        Never raises for failures of the solution or the machine. Permanently refused counters (no ncu, no
        permission) are not requested again.
        """
        if self._last is None or self._last.solution != solution.hash:
            own = [k.name for k in evaluation.kernels if k.own]
            try:
                self._find()
                programs = (Path(self._ncu), *install_folders(self._ncu)) if self._ncu else ()
                with self._presenter.subject(definition, workloads, solution, programs=programs) as subject:
                    self._last = self._observe(subject, solution, own)
            except (AgentForgeError, OSError) as error:
                self._report(Refused(Refusal.FAILED, f"a solution cannot be profiled ({error})"))
                return Observation(solution.hash)
        return self._last

    def _find(self) -> None:
        if self._ncu or self._refused_for_good:
            return
        try:
            self._ncu = available_ncu()
        except Refused as refused:
            self._refuse(refused)

    def _refuse(self, refused: Refused) -> None:
        self._report(refused)
        self._refused_for_good = self._refused_for_good or (
            refused.kind is not Refusal.FAILED and not self._seen
        )

    def _observe(self, subject: Subject, solution: Solution, own: Sequence[str]) -> Observation:
        if not self._refused_for_good:
            try:
                return self._counters(subject, solution, own)
            except Refused as refused:
                self._refuse(refused)
        return _times(subject, solution)

    def _counters(self, subject: Subject, solution: Solution, own: Sequence[str]) -> Observation:
        report = subject.results / "report.ncu-rep"
        output = self._collect(subject, report, own)
        if UNKNOWN_METRIC in output:
            self._known = frozenset()  # the query listed a metric that the chip lacks
            output = self._collect(subject, report, own)
        if own and NONE_PROFILED in output and refusal_in(output) is None:
            output = self._collect(
                subject, report, ()
            )  # the kernels have other names here than in the evaluation
        try:
            if not report.exists():
                raise Refused(Refusal.FAILED, f"ncu wrote no report ({error_line(output)})")
            reports = by_kernel(self._read(subject, report))
        except Refused as failed:
            raise refusal_in(output) or failed from failed
        self._seen = True
        return Observation(
            solution=solution.hash,
            metrics=metrics_of(reports),
            findings=findings_of(reports, [s.path for s in solution.sources]),
            classification=classification_of(reports),
        )

    def _collect(self, subject: Subject, report: Path, own: Sequence[str]) -> str:
        """Profile into a report; return what ncu and the solution printed.

        Raises:
            Refused: it took too long.
        """
        metrics = existing(WANTED, self._query())
        command = profile_command(self._ncu, subject.command(), report, kernels=own, metrics=metrics)
        with subject.alone():
            done = subject.run(command, timeout_s=_PROFILE_S)
        if done.timed_out:
            raise Refused(Refusal.FAILED, f"ncu took longer than {_PROFILE_S:.0f} s")
        return f"{done.stdout}\n{done.stderr}"

    def _query(self) -> frozenset[str]:
        """Base names of the chip's metrics; empty if ncu does not list them."""
        if self._known is None:
            done = run_command(query_command(self._ncu), cwd=Path(tempfile.gettempdir()), timeout_s=_QUERY_S)
            self._known = parse_query(done.stdout) if done.returncode == 0 else frozenset()
        return self._known

    def _read(self, subject: Subject, report: Path) -> tuple[KernelReport, ...]:
        """Read the report in the sandbox: the solution's process could have written anything to it."""
        answer = subject.results / "report.json"
        command = read_command(interpreter(), report, answer, install_folders(self._ncu))
        try:
            answer.unlink(missing_ok=True)  # a pipe left there would block the reader
            subject.run(command, timeout_s=_READ_S)
            reading = Reading.model_validate_json(read_regular(answer, _MOST_BYTES))
        except (OSError, ValueError) as error:
            raise Refused(Refusal.FAILED, f"ncu's report cannot be read ({first_line(error)})") from error
        if reading.refusal is not None:
            raise Refused(reading.refusal, reading.message)
        return reading.reports


def _times(subject: Subject, solution: Solution) -> Observation:
    """Kernel times from CUPTI's activity records, which every user may read."""
    from agentforge.referee.profiling_bridge.main import (
        Times,
    )  # needs torch, which the first plan does not need

    answer = subject.results / "times.json"
    with subject.alone():
        subject.run(subject.command(str(answer)), timeout_s=_TIMES_S)
    try:
        times = Times.model_validate_json(read_regular(answer, _MOST_BYTES))
    except (OSError, ValueError):
        return Observation(solution.hash)
    kernel_s = sum(k.seconds for k in times.kernels) / times.calls
    if not kernel_s > 0:
        return Observation(solution.hash)
    metrics = [
        Metric(
            name="kernel_time",
            value=k.seconds / times.calls,
            unit="s",
            source="profiler",
            kernel=k.name[:_MOST_NAME],
        )
        for k in times.kernels[:_MOST_TIMED]
    ]
    launches = sum(k.launches for k in times.kernels) / times.calls
    metrics.append(Metric(name="launches", value=launches, source="profiler"))
    return Observation(solution.hash, tuple(metrics), kernel_s=kernel_s)
