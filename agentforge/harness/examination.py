"""One evaluation from beginning to end: build, stages, timing, more process groups, physics."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from agentforge.config import RefereeSettings
from agentforge.devices import DeviceSpec
from agentforge.languages import AheadOfTimeLanguage, languages
from agentforge.schema import (
    Definition,
    Diagnostic,
    EvaluationStatus,
    Interval,
    Level,
    Solution,
    StageResult,
    Workload,
    merged_metrics,
)

from . import physics
from .bench import Bench, Course
from .candidate import BuildFailure, Candidate, Workshop
from .contents import Unusual
from .endurance import endure
from .hindrance import alone, hindrance
from .judge import Judge
from .laboratory import Laboratory
from .neuter import neuter_folder
from .party import PartyFailure
from .placement import Placement
from .stages import (
    Aftermath,
    Attestation,
    Context,
    Determinism,
    Edges,
    Gradients,
    Mutation,
    RandomInputs,
    Relations,
    Sharpened,
    Smoke,
    Stability,
    Stage,
    StaticNotes,
    Threads,
    Types,
)
from .stages.memory_safety import SANITIZERS, MemorySafety, has_kernels, other_thread_counts
from .statistics import CONTROL_SLACK, holds_one
from .timing import GroupTimes, Timer
from .variants import Variants
from .verdict import MAX_STAGE_TEXT, Findings, disagreement, group_intervals, performance, weighted

Progress = Callable[[str], None]
"""Told the name of each stage as it begins."""

STAGES: tuple[Stage, ...] = (
    Smoke(), RandomInputs(), Sharpened(), Determinism(), Mutation(), Attestation(), Threads(), Aftermath(),
    Types(), Gradients(), Edges(), Stability(), Relations(),
)  # fmt: skip
"""Those that need a running candidate, in the order of their cost."""

_GROUPS_SLACK = 0.30
"""Ratio between process groups beyond which disjoint intervals are a disagreement."""
_CLOCK_DISAGREES = 0.5
_CLOCK_LEAST_S = 1e-3
_OTHER_WEIGHTS = (
    "its state_dict has other names or shapes than the reference's: those weights kept their initial values"
)
_ALL_OF_IT = 1.1
"""Share of the measured time that a worker may claim, clocks being what they are."""
_PATIENCE, _QUICK_PATIENCE = 4.0, 1.0
_LEAST_BLOCKS, _LEAST_QUICK_BLOCKS = 8, 4
"""Whatever they cost: the ends of a bootstrap interval of fewer are its extremes."""
_SPARE_GROUPS = 2


@dataclass
class Examination:
    """Examines one solution and writes what it finds into `findings`."""

    definition: Definition
    workloads: Sequence[Workload]
    solution: Solution
    level: Level
    settings: RefereeSettings
    device: DeviceSpec
    workshop: Workshop
    laboratory: Laboratory | None
    warm: Callable[[], Bench]
    fresh: Callable[[], Bench]
    cache: Path
    sol_s: float | None
    findings: Findings
    progress: Progress | None = None

    def run(self) -> None:
        """Examine.

        Raises:
            PartyFailure, BuildFailure: the verdict against the candidate.
            TargetError: the reference does not run.
        """
        self._deadline = time.monotonic() + self.settings.evaluation_timeout_s
        self._untimed = ""
        self._unusual: dict[str, list[Unusual]] = {}
        with self._stage("static") as detail:
            detail.extend(StaticNotes().notes(self.solution))
        folder = self._build()
        self._memory = None
        if self.laboratory is not None and self.level is Level.FULL and has_kernels(self.solution):
            self._memory = MemorySafety(self.laboratory, self.workshop, self.solution, folder)
        try:
            self._judge_built(folder)
        finally:
            if self._memory is not None:
                self._memory.close()
            shutil.rmtree(folder, ignore_errors=True)

    def _build(self) -> Path:
        with self._stage("build") as detail:
            folder, result = self.workshop.build(self.solution)
            detail.append("from the cache" if result.cached else f"{result.seconds:.2f} s")
        self.findings.diagnostics = result.diagnostics
        self.findings.metrics = result.metrics
        self.findings.resources = result.resources
        self._untimed = result.untimed
        self.findings.remarks = result.findings
        if result.unjudged:
            shutil.rmtree(folder, ignore_errors=True)
            raise BuildFailure(EvaluationStatus.UNVERIFIED, result.unjudged, result)
        return folder

    def _judge_built(self, folder: Path) -> None:
        with self._stage("baselines") as detail:
            bench = self.warm()
            detail.extend(bench.notes)
        with self._stage("task") as detail:
            task = bench.check_task()
            detail.extend(task.describe())
            self.findings.suspicions.extend(task.weaknesses)
        if task.notes():
            self.findings.notes["task"] = "; ".join(task.notes())
        judge = Judge()
        groups: list[list[GroupTimes]] = []
        try:
            groups.append(self._group(folder, bench, judge, whole=True))
            if self.level is Level.FULL and not self._untimed:
                self._more_groups(folder, judge, groups)
        finally:
            self.findings.correctness = judge.correctness()
        self._conclude(groups, bench)

    # -- one process group

    def _group(self, folder: Path, bench: Bench, judge: Judge, *, whole: bool) -> list[GroupTimes]:
        """Start the candidate, examine it, time it on every workload.

        Args:
            folder: of the built solution.
            bench: baselines of this group.
            judge: of all groups.
            whole: run all stages, not only the first ones.
        """
        remote = self.workshop.side.remote
        before = self._alone(bench) if remote else []
        bench.enter(bench.courses[0])
        with self._stage("start" if whole else "restart") as detail:
            candidate = self.workshop.start(self.solution, folder, bench, bench.courses[0])
            detail.append(f"weights: {candidate.weights}")
        self.findings.notes["weights"] = candidate.weights
        try:
            times = [
                times
                for course in bench.courses
                if (times := self._course(folder, candidate, bench, course, judge, whole=whole)) is not None
            ]
            self.findings.log = candidate.party.worker.log_tail()[-8000:]
        except PartyFailure:
            if candidate.weights == "partly":
                self.findings.unproven.append(_OTHER_WEIGHTS)
            raise
        finally:
            candidate.close()
        if remote and times:
            self.findings.unproven += filter(None, [hindrance(before, times, self._alone(bench))])
        return times

    def _alone(self, bench: Bench) -> list[float]:
        with self._stage("alone") as detail, self.workshop.side.lock(self.cache):
            found = alone(bench)
            detail.append(f"the reference takes {', '.join(f'{s * 1e3:.3f} ms' for s in found)} without it")
        return found

    def _course(
        self, folder: Path, candidate: Candidate, bench: Bench, course: Course, judge: Judge, *, whole: bool
    ) -> GroupTimes | None:
        """Examine and time the candidate on one workload; None where its time means nothing."""
        if course is not bench.courses[0]:
            bench.enter(course)
            candidate.party.configure(course.body(), course.inputs, course.outputs_bytes)
        context = Context(
            self.definition, self.solution, self.settings, self.level, bench, candidate.party, judge, course
        )
        placement = Placement([*bench.parties.values(), candidate.party], self.settings.threads)
        try:
            for stage in STAGES:
                wanted = self.level in stage.levels if whole else isinstance(stage, Smoke)
                if wanted:
                    self._out_of_time()
                    with self._stage(stage.name) as detail:
                        detail.append(stage.run(context))
                if isinstance(stage, Smoke):
                    with self._stage("placement") as detail:
                        placement.place(bench.eager)
                        detail.append(placement.settle(candidate.party))
                    if whole:
                        self._compile_launched(folder, candidate)
        except PartyFailure as failure:
            if failure.status is EvaluationStatus.UNVERIFIED:
                self._compile_launched(folder, candidate)
            raise
        finally:
            self.findings.suspicions.extend(context.suspicions)
            if context.notes:
                self.findings.notes["output"] = "; ".join(context.notes)
            self.findings.metrics = merged_metrics(self.findings.metrics, context.metrics)
            if context.kernels:
                self.findings.kernels = tuple(context.kernels)
                self.findings.own_share = context.own_share
        if whole:
            self._unusual[course.workload.hash] = context.unusual
            self._beyond_the_workload(folder, candidate, bench, course, judge)
        if self._untimed:
            self.findings.suspicions.extend(context.suspicions)
            return None
        self._endurance(candidate, bench, course, judge)
        with self._stage("timing") as detail, self.workshop.side.lock(self.cache):
            times = self._time(bench, candidate, course, judge, placement)
            detail.append(f"{times.blocks} blocks, steal {times.steal:.1%}")
            detail.append(self.workshop.side.telemetry())
        self._endurance(candidate, bench, course, judge)
        with self._stage("aftermath") as detail:
            detail.append(Aftermath().run(context))
        if times.others:
            context.suspicions.append(f"it had {times.others} more processes running while it was timed")
        self.findings.unproven.extend(times.doubts)
        self.findings.suspicions.extend(context.suspicions)
        self._compare_clocks(times)
        return times

    def _compile_launched(self, folder: Path, candidate: Candidate) -> None:
        """Compile for devices that are not there what the first call launched."""
        if not isinstance(languages.create(self.solution.spec.language), AheadOfTimeLanguage):
            return
        with self._stage("compile") as detail:
            launches = candidate.party.request({"op": "launches"}).get("launches")
            result = self.workshop.compile_launched(self.solution, folder, launches)
            if result is not None:
                self.findings.resources = result.resources or self.findings.resources
                self.findings.diagnostics += result.diagnostics
                detail += [f"{r.kernel} for {r.target}: {r.registers} registers" for r in result.resources]

    def _endurance(self, candidate: Candidate, bench: Bench, course: Course, judge: Judge) -> None:
        """Before and after timing, so that nobody can count up to the calls that matter."""
        if self.level is Level.FULL:
            with self._stage("endurance") as detail:
                detail.append(endure(bench, candidate.party, course, judge))

    def _beyond_the_workload(
        self, folder: Path, candidate: Candidate, bench: Bench, course: Course, judge: Judge
    ) -> None:
        """Stages that need more than the running candidate: other layouts, kernels taken out."""
        if self.level is Level.FULL:
            with self._stage("variants") as detail:
                detail.append(Variants(bench, candidate, judge).run(course))
        if self.level is Level.FULL or self.definition.policy != "anything-faster":
            with self._stage("engagement") as detail:
                detail.append(self._engagement(folder, bench, course))
        if self._memory is not None:
            self._memory_safety(self._memory, folder, bench, course)

    def _memory_safety(self, checks: MemorySafety, folder: Path, bench: Bench, course: Course) -> None:
        """Out of bounds, undefined behaviour, races: sanitized builds in processes of their own."""
        for sanitizer in SANITIZERS:
            self._out_of_time()
            with self._stage(sanitizer.name) as detail:
                found: list[Diagnostic] = []
                try:
                    detail.append(checks.run(bench, course, sanitizer, found))
                finally:
                    self.findings.diagnostics += tuple(found)
        with self._stage("thread counts") as detail:
            detail.append(other_thread_counts(self.workshop, self.solution, folder, bench, course))

    def _engagement(self, folder: Path, bench: Bench, course: Course) -> str:
        """Whether the answer is still right when the candidate's own kernels do nothing."""
        course.inputs.fill(0)
        expected = bench.expect(course, 0)
        copy = folder.with_name(folder.name + "-neutered")
        shutil.copytree(folder, copy, symlinks=True)
        try:
            names = neuter_folder(copy)
            if not names:
                return self._nothing_to_take_out(folder)
            candidate = self.workshop.start(self.solution, copy, bench, course)
            try:
                candidate.party.call(0)
                got = candidate.party.fetch(0)
                Judge().check(got, expected, course.bounds, "without its kernels")
            finally:
                candidate.close()
        except PartyFailure:
            return f"without {', '.join(names[:8])} its answer is wrong: they do the work"
        finally:
            shutil.rmtree(copy, ignore_errors=True)
        self.findings.suspicions.append(
            f"its answer is right though its kernels ({', '.join(names[:4])}) do nothing: others do the work"
        )
        return "its kernels do none of the work"

    def _nothing_to_take_out(self, folder: Path) -> str:
        compiled = any(folder.rglob("*.so"))
        if self.definition.policy != "anything-faster":
            self.findings.suspicions.append(
                "the task asks for own kernels, and its own could not be taken out to see whether they work"
                if compiled
                else "the task asks for own kernels and it has no compiled ones"
            )
        return "its kernels could not be taken out" if compiled else "no compiled kernels"

    def _time(
        self, bench: Bench, candidate: Candidate, course: Course, judge: Judge, placement: Placement
    ) -> GroupTimes:
        full = self.level is Level.FULL
        blocks = self.settings.full_blocks if full else self.settings.quick_blocks
        seconds = self.settings.full_seconds if full else self.settings.quick_seconds
        least = _LEAST_BLOCKS if full else _LEAST_QUICK_BLOCKS
        if full and self.definition.op_type == "model":
            seconds *= self.settings.model_factor
        patience = _PATIENCE if full else _QUICK_PATIENCE
        unusual = self._unusual[course.workload.hash]
        gap_s = self.settings.server_gap_s
        if gap_s:
            self.findings.notes["calls"] = (
                f"after random pauses of {gap_s * 1e3:g} ms on average (server mode)"
            )
        return Timer(bench, candidate.party, course, judge, placement, patience, unusual, gap_s).run(
            blocks, seconds / len(self.workloads), min(least, blocks)
        )

    def _compare_clocks(self, times: GroupTimes) -> None:
        """What the candidate's process says of its own time is a hint; the eager one's says how good."""
        if median(times.seconds["candidate"]) < _CLOCK_LEAST_S:
            return
        ours, theirs = times.claimed["candidate"], times.claimed["eager"]
        # Up to all of the time is no more than it may say, whatever an eager worker that was disturbed says.
        if not _CLOCK_DISAGREES * theirs < ours < max(theirs / _CLOCK_DISAGREES, _ALL_OF_IT):
            self.findings.suspicions.append(
                f"its process's clock says {ours:.2g} of the time that the referee measured"
            )

    # -- fresh groups

    def _more_groups(self, folder: Path, judge: Judge, groups: list[list[GroupTimes]]) -> None:
        spare = _SPARE_GROUPS
        while len(groups) < self.settings.processes:
            self._out_of_time()
            bench = self.fresh()
            try:
                group = self._group(folder, bench, judge, whole=False)
            finally:
                bench.close()
            if spare and not holds_one(_controls(self, [group]), CONTROL_SLACK):
                spare -= 1
                self.findings.notes["redone"] = (
                    f"{_SPARE_GROUPS - spare} process groups with an unsteady control"
                )
                continue
            groups.append(group)

    # -- verdict

    def _conclude(self, groups: list[list[GroupTimes]], bench: Bench) -> None:
        findings = self.findings
        if self._untimed:
            findings.unproven.append(self._untimed)
            return
        weights = [w.weight for w in self.workloads]
        result = performance(groups, weights, self.sol_s)
        findings.notes["steal"] = f"{max(t.steal for g in groups for t in g):.2%}"
        findings.notes["threads"] = str(self.settings.threads)
        if bench.notes:
            findings.notes["baselines"] = "; ".join(bench.notes)
        nbytes = max(c.inputs.slot_bytes for c in bench.courses)
        with self._stage(physics.STAGE) as detail:
            suspicion = physics.check(result, self.device, nbytes)
            if suspicion:
                detail.append(suspicion)
                findings.suspicions.append(suspicion)
        findings.performance = result
        if self.level is not Level.FULL:
            findings.unproven.append("level quick measures one process group; run level full to verify")
            return
        if not holds_one(_controls(self, groups), CONTROL_SLACK):
            findings.unproven.append(
                f"the same baseline in two processes differs by {result.control.low:.2f} to "
                f"{result.control.high:.2f}: measure again on a quieter machine"
            )
        combined = [weighted(g, weights) for g in groups]
        for name in result.speedup:
            problem = disagreement(group_intervals(combined, name), _GROUPS_SLACK)
            if problem:
                findings.unproven.append(f"against {name}, {problem}")

    def _out_of_time(self) -> None:
        if time.monotonic() > self._deadline:
            raise PartyFailure(
                EvaluationStatus.TIMEOUT,
                f"the evaluation took more than {self.settings.evaluation_timeout_s:g} s",
            )

    @contextmanager
    def _stage(self, name: str) -> Iterator[list[str]]:
        """Record a stage; the body appends what was found."""
        if self.progress is not None:
            self.progress(name)
        detail: list[str] = []
        start, status = time.perf_counter(), EvaluationStatus.PASSED
        try:
            yield detail
        except (PartyFailure, BuildFailure) as failure:
            status = failure.status
            detail.append(failure.reason)
            raise
        except BaseException:
            status = EvaluationStatus.HARNESS_ERROR
            raise
        finally:
            text = "; ".join(d for d in detail if d)[:MAX_STAGE_TEXT]
            seconds = time.perf_counter() - start
            self.findings.stages.append(StageResult(name=name, status=status, seconds=seconds, detail=text))


def _controls(examination: Examination, groups: list[list[GroupTimes]]) -> list[Interval]:
    """The A/A' control of each process group."""
    weights = [w.weight for w in examination.workloads]
    return [performance([group], weights, None).control for group in groups]
