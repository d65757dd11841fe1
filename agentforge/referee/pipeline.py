"""One evaluation from beginning to end: build, checks, timing, more process groups, result."""

from __future__ import annotations

import math
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from agentforge.schema import EvaluationStatus, Level, Performance, ReasonCode, StageResult, TimeEnded

from ._base import OnStage
from .baselines.baselines import Baselines
from .baselines.prepared import PreparedWorkload
from .candidates.build import BuildFailure
from .candidates.candidate import Candidate
from .candidates.sanitized_builds import SanitizedBuilds, has_kernels
from .candidates.sanitizer_pool import SanitizerPool
from .checks import PIPELINE, CheckContext, When
from .checks.agreement import control_steady, noise
from .checks.behaviour.ahead_of_time import AheadOfTime
from .result import MAX_STAGE_TEXT, performance
from .timing.patience import Patience
from .timing.statistics import of_few_blocks
from .timing.timer import GroupTimes, Timer
from .workers.failures import WorkerFailure, trusted

_OTHER_WEIGHTS = (
    "its state_dict has other names or shapes than the reference's: those weights kept their initial values"
)
_LEAST_BLOCKS = 4
"""Blocks that are measured whatever they cost."""
_SPARE_GROUPS = 2
"""Process groups beyond the plan, while there is patience: in the place of one that something may have
disturbed, or if the speedup is still undecided."""


class _TooLong(WorkerFailure):
    """The evaluation's time is over."""


@dataclass
class EvaluationPipeline:
    """Runs the checks of `PIPELINE` and the timing of one solution; the results go to `context.findings`."""

    context: CheckContext
    warm: Callable[[], Baselines]
    fresh: Callable[[], Baselines]
    sanitizer_pool: SanitizerPool | None
    progress: OnStage | None = None

    def run(self) -> None:
        """Evaluate.

        Raises:
            WorkerFailure, BuildFailure: the verdict against the candidate.
            TargetError: the reference does not run.
            HarnessError: a trusted worker failed.
            TimeEnded: the request's deadline came first.
        """
        try:
            self._run()
        except (WorkerFailure, BuildFailure) as failure:
            if failure.status is EvaluationStatus.TIMEOUT and self._ended():
                raise _time_ended() from failure
            if isinstance(failure, WorkerFailure) and failure.worker:
                self.context.findings.log = failure.log
                raise trusted(failure, f"the reference failed in the worker {failure.worker}") from failure
            if isinstance(failure, WorkerFailure) and failure.status is EvaluationStatus.OUT_OF_MEMORY:
                room = self.context.builder.backend.room()
                failure.reason += f" (without this solution, {room})" if room else ""
            raise

    def _run(self) -> None:
        context = self.context
        self._end = math.inf if context.request.deadline is None else context.request.deadline
        self._deadline = time.monotonic() + context.settings.evaluation_timeout_s
        context.builder.deadline = self._deadline + context.settings.evaluation_timeout_s
        self._allow(0.0)
        self._untimed = ""
        full = context.level is Level.FULL
        patience = min(context.settings.patience_s, max(0.0, self._deadline - time.monotonic()))
        self._patience = Patience(patience if full else 0.0, context.settings.threads)
        context.folder = self._build()
        if self.sanitizer_pool is not None and context.level is Level.FULL and has_kernels(context.solution):
            context.sanitized = SanitizedBuilds(
                self.sanitizer_pool, context.builder, context.solution, context.folder
            )
        try:
            self._evaluate_built()
        except WorkerFailure as failure:
            late = time.monotonic() > context.builder.deadline
            if failure.status is EvaluationStatus.TIMEOUT and late and not failure.worker:
                raise replace(self._too_long(2), starved=failure.starved) from failure
            raise
        finally:
            with self._stage("end"):
                if context.sanitized is not None:
                    context.sanitized.close()
                shutil.rmtree(context.folder, ignore_errors=True)

    def _build(self) -> Path:
        context, findings = self.context, self.context.findings
        with self._stage("build") as detail:
            folder, result = context.builder.build(context.solution)
            detail.append("from the cache" if result.cached else f"{result.seconds:.2f} s")
        findings.diagnostics = result.diagnostics
        findings.metrics = result.metrics
        findings.resources = result.resources
        findings.remarks = result.findings
        self._untimed = result.untimed
        if result.unjudged:
            shutil.rmtree(folder, ignore_errors=True)
            raise BuildFailure(EvaluationStatus.UNSUPPORTED, result.unjudged, result)
        return folder

    def _evaluate_built(self) -> None:
        context = self.context
        with self._stage("baselines") as detail:
            with self._not_its_time():
                warm = context.baselines = self.warm()
            detail.extend(warm.notes)
        self._checks(When.BASELINES)
        if not self._untimed and context.level is not Level.SMOKE:
            warm.compile_ahead(context.level)
        try:
            self._measure_groups()
        finally:
            context.findings.correctness = context.comparator.correctness()
            context.baselines = warm
        self._conclude()

    # -- process groups

    def _measure_groups(self) -> None:
        """Measure the planned process groups, and spare ones while there is patience."""
        context, spare, repeated = self.context, _SPARE_GROUPS, 0
        planned = context.settings.processes if self._verifies else 1
        group = self._group(first=True)
        while True:
            patient = self._verifies and spare > 0 and self._patience.left > 0
            if patient and not self._undisturbed(group):
                spare, repeated = spare - 1, repeated + 1
                context.findings.notes["redone"] = f"{repeated} process groups that something disturbed"
            else:
                self._keep(group)
                if len(context.groups) >= planned and not (patient and self._undecided()):
                    return
                spare -= len(context.groups) >= planned
            try:
                self._check_deadline()
                begin = time.monotonic()
                group = self._fresh_group()
            except _TooLong as late:
                if not context.groups:
                    self._keep(group)
                if len(done := context.groups) < planned:
                    sentence = f"{late}: {len(done)} of {planned} process groups were measured until then"
                    context.findings.doubt(ReasonCode.TIMEOUT, sentence)
                return
            if len(context.groups) + repeated >= planned:  # beyond the plan
                self._patience.spend(time.monotonic() - begin)

    def _fresh_group(self) -> list[GroupTimes]:
        """A process group with baselines of its own."""
        with self._stage("baselines"), self._not_its_time():
            self.context.baselines = self.fresh()
        try:
            return self._group(first=False)
        finally:
            with self._stage("end"):
                self.context.baselines.close()

    def _undisturbed(self, group: list[GroupTimes]) -> bool:
        """Whether its control is steady and no overhead is in doubt."""
        return control_steady(self.context, group) and not any(times.doubts for times in group)

    def _keep(self, group: list[GroupTimes]) -> None:
        """Let the verdict rest on this process group."""
        self.context.groups.append(group)
        for doubt in (doubt for times in group for doubt in times.doubts):
            self.context.findings.doubt(ReasonCode.DEFERRED_WORK, doubt)

    @property
    def _verifies(self) -> bool:
        """Whether the verdict may be `verified`."""
        return self.context.level is Level.FULL and not self._untimed

    def _undecided(self) -> bool:
        """Whether the groups so far say too little; two groups more halve the interval between processes."""
        found = self._performance()
        return any(noise(found, name) for name in found.speedup)

    def _performance(self) -> Performance:
        request = self.context.request
        names = [w.name for w in request.workloads] if len(request.workloads) > 1 else []
        return performance(self.context.groups, request.weights, request.sol_s, names)

    def _group(self, *, first: bool) -> list[GroupTimes]:
        """Start the candidate, check it and time it on every workload.

        Returns:
            Timings of each workload; empty if timings mean nothing here.
        """
        context, baselines = self.context, self.context.baselines
        context.group_times, context.first_group = [], first
        self._checks(When.GROUP_START)
        baselines.enter(baselines.prepared[0])
        with self._stage("start" if first else "restart") as detail:
            candidate = context.builder.start(
                context.solution, context.folder, baselines, baselines.prepared[0]
            )
            detail.append(f"weights: {candidate.weights}")
        context.candidate = candidate.client
        context.findings.notes["weights"] = candidate.weights
        try:
            prepared_here = baselines.prepared
            if context.level is Level.SMOKE:
                prepared_here = [min(prepared_here, key=lambda p: p.inputs.slot_bytes)]
            for prepared in prepared_here:
                self._workload(candidate, prepared, first=first)
            context.findings.log = candidate.client.worker.log_tail()[-8000:]
        except WorkerFailure:
            if candidate.weights == "partly":
                context.findings.doubt(ReasonCode.PARTIAL_WEIGHTS, _OTHER_WEIGHTS)
            raise
        finally:
            with self._stage("end"):
                candidate.close()
        if context.group_times:
            self._checks(When.GROUP_END)
        return context.group_times

    def _workload(self, candidate: Candidate, prepared: PreparedWorkload, *, first: bool) -> None:
        """Check and time the candidate on one workload."""
        context = self.context
        if prepared is not context.baselines.prepared[0]:
            context.baselines.enter(prepared)
            candidate.client.configure(prepared.body(), prepared.inputs, prepared.outputs_bytes)
        context.prepared = prepared
        try:
            self._checks(When.EXAMINATION, every_group=not first)
        except WorkerFailure as failure:
            if failure.status is EvaluationStatus.UNSUPPORTED:
                self._compile_launched()
            if prepared.workload.key and not failure.worker:
                failure.reason = f"workload {prepared.workload.key}: {failure.reason}"
            raise
        if self._untimed or context.level is Level.SMOKE:
            return
        if context.baselines.missing(context.level):
            with self._stage("compiled baseline") as detail, self._not_its_time():
                known = len(context.baselines.notes)
                context.baselines.start_compiled(context.level, until=self._end)
                detail.extend(context.baselines.notes[known:])
            self._check_deadline()
        self._checks(When.BEFORE_TIMING)
        self._time()
        self._checks(When.AFTER_TIMING)

    def _compile_launched(self) -> None:
        """Compile kernels that cannot run here: whether they compile is known all the same."""
        check = AheadOfTime()
        if check.applies(self.context):
            with self._stage(check.name) as detail:
                detail.append(check.run(self.context))

    def _time(self) -> None:
        context, settings, findings = self.context, self.context.settings, self.context.findings
        full = context.level is Level.FULL
        blocks = settings.full_blocks if full else settings.quick_blocks
        seconds = settings.full_seconds if full else settings.quick_seconds
        if full and context.definition.whole_model:
            seconds *= settings.model_factor
        gap_s = settings.server_gap_s
        if gap_s:
            findings.notes["calls"] = f"after random pauses of {gap_s * 1e3:g} ms on average (server mode)"
        timer = Timer(
            context.baselines, context.candidate, context.prepared, context.comparator, context.placement,
            self._patience, context.unusual[context.prepared.workload.hash], gap_s,
        )  # fmt: skip
        with self._stage("timing") as detail, ExitStack() as alone:
            with self._not_its_time():
                alone.enter_context(context.builder.lock(self._end, self.progress))
            waited = self._patience.waited
            seconds = min(seconds, max(0.1, self._deadline - time.monotonic()))
            shared = seconds / len(context.request.workloads)
            times = timer.run(blocks, shared, min(_LEAST_BLOCKS, blocks), self._deadline)
            detail.append(f"{times.blocks} blocks, steal {times.steal:.1%}")
            waited = self._patience.waited - waited
            detail.append(f"waited {waited:.1f} s for free processors" if waited else "")
            detail.append(context.builder.backend.telemetry())
        times.doubts += context.doubts_now
        context.doubts_now = []
        context.times = times
        context.group_times.append(times)
        if times.others:
            findings.suspect(
                ReasonCode.MORE_PROCESSES, f"{times.others} more processes of it ran while it was timed"
            )

    # -- result

    def _conclude(self) -> None:
        context, findings = self.context, self.context.findings
        if self._untimed:
            findings.doubt(ReasonCode.UNTIMED, self._untimed)
            return
        if context.level is Level.SMOKE:
            findings.doubt(ReasonCode.QUICK_LEVEL, "level smoke compares one call and times none")
            return
        findings.performance = self._performance()
        findings.notes["steal"] = f"{max(t.steal for g in context.groups for t in g):.2%}"
        findings.notes["threads"] = str(context.settings.threads)
        if context.baselines.notes:
            findings.notes["baselines"] = "; ".join(context.baselines.notes)
        if context.level is not Level.FULL:
            few = of_few_blocks(findings.performance.blocks)
            sentence = f"level quick measures one process group{few}; run level full to verify"
            findings.doubt(ReasonCode.QUICK_LEVEL, sentence)
        self._checks(When.RESULT)

    # -- checks and stages

    def _checks(self, when: When, *, every_group: bool = False) -> None:
        """Run the checks of one part of the evaluation; with `every_group` only those of every group."""
        for check in PIPELINE:
            if check.when is not when or (every_group and not check.every_group):
                continue
            if self.context.level is Level.SMOKE and Level.SMOKE not in check.levels:
                continue
            if check.applies(self.context):
                if when is When.EXAMINATION:  # what was measured already is not thrown away
                    self._check_deadline()
                with self._stage(check.name) as detail:
                    detail.append(check.run(self.context))

    def _ended(self) -> bool:
        """Whether the caller's time has ended."""
        return time.monotonic() > self._end

    def _check_deadline(self) -> None:
        if self._ended():
            raise _time_ended()
        if time.monotonic() > self._deadline:
            raise self._too_long(1)

    def _too_long(self, times: int) -> WorkerFailure:
        seconds = times * self.context.settings.evaluation_timeout_s
        reason = f"the evaluation took more than {seconds:g} s (referee.evaluation_timeout_s allows more)"
        return _TooLong(EvaluationStatus.TIMEOUT, reason)

    def _allow(self, seconds: float) -> None:
        """Move the evaluation's limits, but not beyond the end of the caller's time."""
        builder = self.context.builder
        self._deadline = min(self._deadline + seconds, self._end)
        builder.deadline = min(builder.deadline + seconds, self._end)
        if hasattr(self.context, "candidate"):
            self.context.candidate.worker.channel.deadline = builder.deadline

    @contextmanager
    def _not_its_time(self) -> Iterator[None]:
        """What the candidate waits for meanwhile does not count as the evaluation's time."""
        begin = time.monotonic()
        try:
            yield
        finally:
            self._allow(time.monotonic() - begin)

    @contextmanager
    def _stage(self, name: str) -> Iterator[list[str]]:
        """Record a stage; the body appends what was found."""
        if self.progress is not None:
            self.progress(name)
        detail: list[str] = []
        start, status = time.perf_counter(), EvaluationStatus.PASSED
        try:
            yield detail
        except (WorkerFailure, BuildFailure) as failure:
            status = EvaluationStatus.HARNESS_ERROR if getattr(failure, "worker", "") else failure.status
            detail.append(failure.reason)
            raise
        except BaseException:
            status = EvaluationStatus.HARNESS_ERROR
            raise
        finally:
            text = "; ".join(d for d in detail if d)[:MAX_STAGE_TEXT]
            seconds = time.perf_counter() - start
            self.context.findings.stages.append(
                StageResult(name=name, status=status, seconds=seconds, detail=text)
            )


def _time_ended() -> TimeEnded:
    return TimeEnded("the run's time ended during an evaluation: resume the run with more minutes")
