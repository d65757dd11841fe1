"""Profiles a solution that was just judged: a judge sees the counters of the very code it is shown."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from agentforge.harness import Presenter, Subject
from agentforge.languages.command import interpreter, run_command
from agentforge.languages.untrusted import read_regular
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

from .capability import (
    NONE_PROFILED,
    UNKNOWN_METRIC,
    Once,
    Refusal,
    Refused,
    available_ncu,
    complaint_in,
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
"""Kernels whose times are kept, and characters of their names: templates spell out all their arguments."""


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


class NsightObserver:
    """Hardware counters where the machine gives them, kernel times where it does not.

    Args:
        presenter: the referee, whose sandbox holds the solution, the profiler and what reads its report.
        say: told once, in a sentence, where counters are refused.
    """

    def __init__(self, presenter: Presenter, say: Callable[[str], None]) -> None:
        self._presenter = presenter
        self._once = Once(say)
        self._ncu = ""
        self._known: frozenset[str] | None = None
        self._hopeless = False
        self._seen = False
        """Counters were read: who says afterwards that nobody may read them is a solution."""
        self._last: Observation | None = None

    def observe_evaluated(
        self,
        definition: Definition,
        workloads: Sequence[Workload],
        solution: Solution,
        evaluation: Evaluation,
    ) -> Observation:
        """Profile a solution; one that was judged at `quick` and then at `full`, once.

        Never raises for what the solution or the machine does. Counters that were refused for good (no ncu,
        no permission) are not asked for again.
        """
        if self._last is None or self._last.solution != solution.hash:
            own = [k.name for k in evaluation.kernels if k.own]
            try:
                self._find()
                programs = (Path(self._ncu), *install_folders(self._ncu)) if self._ncu else ()
                with self._presenter.subject(definition, workloads, solution, programs=programs) as subject:
                    self._last = self._observe(subject, solution, own)
            except (AgentForgeError, OSError) as error:
                self._once(Refused(Refusal.FAILED, f"a solution cannot be profiled ({error})"))
                return Observation(solution.hash)
        return self._last

    def _find(self) -> None:
        if self._ncu or self._hopeless:
            return
        try:
            self._ncu = available_ncu()
        except Refused as refused:
            self._refuse(refused)

    def _refuse(self, refused: Refused) -> None:
        self._once(refused)
        self._hopeless = self._hopeless or (refused.kind is not Refusal.FAILED and not self._seen)

    def _observe(self, subject: Subject, solution: Solution, own: Sequence[str]) -> Observation:
        if not self._hopeless:
            try:
                return self._counters(subject, solution, own)
            except Refused as refused:
                self._refuse(refused)
        return _times(subject, solution)

    def _counters(self, subject: Subject, solution: Solution, own: Sequence[str]) -> Observation:
        report = subject.results / "report.ncu-rep"
        said = self._collect(subject, report, own)
        if UNKNOWN_METRIC in said:
            self._known = frozenset()  # the query promised more than the chip has
            said = self._collect(subject, report, own)
        if own and NONE_PROFILED in said and refusal_in(said) is None:
            said = self._collect(
                subject, report, ()
            )  # its kernels have other names here than when it was judged
        try:
            if not report.exists():
                raise Refused(Refusal.FAILED, f"ncu wrote no report ({complaint_in(said)})")
            reports = by_kernel(self._read(subject, report))
        except Refused as failed:
            raise refusal_in(said) or failed from failed
        self._seen = True
        return Observation(
            solution=solution.hash,
            metrics=metrics_of(reports),
            findings=findings_of(reports, [s.path for s in solution.sources]),
            classification=classification_of(reports),
        )

    def _collect(self, subject: Subject, report: Path, own: Sequence[str]) -> str:
        """Profile into a report; what ncu and the solution printed.

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
        """Base names of the chip's metrics; empty where ncu does not tell."""
        if self._known is None:
            done = run_command(query_command(self._ncu), cwd=Path(tempfile.gettempdir()), timeout_s=_QUERY_S)
            self._known = parse_query(done.stdout) if done.returncode == 0 else frozenset()
        return self._known

    def _read(self, subject: Subject, report: Path) -> tuple[KernelReport, ...]:
        """Where the solution's process could write, a report may be anything: it is parsed in there too."""
        answer = subject.results / "report.json"
        command = read_command(interpreter(), report, answer, install_folders(self._ncu))
        try:
            answer.unlink(missing_ok=True)  # a pipe that lay there would keep the reader waiting
            subject.run(command, timeout_s=_READ_S)
            reading = Reading.model_validate_json(read_regular(answer, _MOST_BYTES))
        except (OSError, ValueError) as error:
            raise Refused(Refusal.FAILED, f"ncu's report cannot be read ({_first_line(error)})") from error
        if reading.refusal is not None:
            raise Refused(reading.refusal, reading.message)
        return reading.reports


def _times(subject: Subject, solution: Solution) -> Observation:
    """Kernel times by CUPTI's activity records, which every user may read."""
    from agentforge.harness.profiled_main import Times  # it needs torch, and the first plan does not

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


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0][:300]
