"""The referee with a profiler behind it: an evaluation that passed says what its solution achieved."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from agentforge.devices import DeviceSpec, Roofline
from agentforge.harness import Builder, Evaluator
from agentforge.harness.physics import contradicted
from agentforge.schema import Definition, Evaluation, Level, Metric, Solution, Workload, merged_metrics

from .achieved import achieved, with_roofline
from .classify import KERNEL_TIME_SHARE, by_roofline, values_of
from .light import Work, light_of
from .nsight import Observation


class Observer(Protocol):
    """Sees what hardware did while a solution ran."""

    def observe_evaluated(
        self,
        definition: Definition,
        workloads: Sequence[Workload],
        solution: Solution,
        evaluation: Evaluation,
    ) -> Observation:
        """Profile a solution that passed; never raises for what it or the machine does."""
        ...


@dataclass
class Instrumented:
    """Evaluates as the referee does, and adds metrics, findings and the class of what passed.

    The verdict is the referee's: nothing here changes a status, a reason or a time. What is faster than
    the speed of light throws doubt on the ceilings too: they are measured again, and where they have risen
    the referee is asked again.
    """

    referee: Evaluator
    device: DeviceSpec
    roofline: Roofline
    work: Mapping[str, Work]
    """Bytes and operations of one call, by hash of the definition."""
    observer: Observer | None = None
    """Reads hardware counters, where the device has some."""
    measure_again: Callable[[], Roofline] | None = None
    """Measures the ceilings once more; None where they are taken as they are."""

    def evaluate(
        self,
        definition: Definition,
        workloads: Sequence[Workload],
        solution: Solution,
        *,
        level: Level,
        sol_s: float | None = None,
    ) -> Evaluation:
        """See the referee's `evaluate`."""
        ask = partial(self.referee.evaluate, definition, workloads, solution, level=level)
        work = self.work.get(definition.hash)
        evaluation = ask(sol_s=self._light(work, sol_s))
        if contradicted(evaluation) and self._risen():
            evaluation = ask(sol_s=self._light(work, sol_s))
        if self.observer is not None and evaluation.passed:
            seen = self.observer.observe_evaluated(definition, workloads, solution, evaluation)
            evaluation = with_observation(evaluation, seen, work, self.device, self.roofline)
        return with_roofline(evaluation, work, self.device, self.roofline)

    def _light(self, work: Work | None, sol_s: float | None) -> float | None:
        """The caller's speed of light, unless the ceilings have risen since it was computed."""
        if work is None or sol_s is None:
            return sol_s
        return min(sol_s, light_of(work, self.device, self.roofline).seconds)

    def _risen(self) -> bool:
        before = self.roofline
        if self.measure_again is not None:
            self.roofline = self.measure_again()
        return self.roofline != before

    def build(self, solution: Solution) -> None:
        """Compile a solution into the cache, where the referee can."""
        if isinstance(self.referee, Builder):
            self.referee.build(solution)


def with_observation(
    evaluation: Evaluation, seen: Observation, work: Work | None, device: DeviceSpec, roofline: Roofline
) -> Evaluation:
    """The evaluation with what a profiler saw of the same solution.

    Where kernels were timed and no counters read, what they achieved is held against the roofline over the
    kernels' own time: the gaps between them are a metric of their own.

    Raises:
        ValueError: the profile is of another solution.
    """
    if seen.solution != evaluation.solution:
        raise ValueError(f"the profile of {seen.solution} is not one of {evaluation.solution}")
    metrics, classification = seen.metrics, seen.classification
    if seen.kernel_s:
        if evaluation.performance is not None and evaluation.performance.latency_s > 0:
            share = min(seen.kernel_s / evaluation.performance.latency_s, 1.0)
            metrics = (*metrics, Metric(name=KERNEL_TIME_SHARE, value=share, unit="1", source="profiler"))
        if work is not None:
            metrics = (*metrics, *achieved(seen.kernel_s, work, device, roofline, source="profiler"))
        classification = classification or by_roofline(values_of(metrics), source="profiler")
    return evaluation.model_copy(
        update={
            "metrics": merged_metrics(evaluation.metrics, metrics),
            "findings": (*seen.findings, *evaluation.findings),  # prompts show the first ones
            "classification": classification or evaluation.classification,
        }
    )
