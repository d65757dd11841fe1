"""The referee with a profiler: adds what a passing solution achieved to its evaluation."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from agentforge.devices import DeviceSpec, Roofline
from agentforge.referee import AroundReferee, EvaluationRequest, Evaluator, OnStage
from agentforge.schema import Definition, Evaluation, Level, Metric, Solution, Workload, merged_metrics

from .classify import KERNEL_TIME_SHARE, by_roofline, values_of
from .nsight import Observation
from .roofline_metrics import achieved, with_roofline
from .speed_of_light import Work, speed_of_light


class Observer(Protocol):
    """Observes the hardware while a solution runs."""

    def observe_evaluated(
        self,
        definition: Definition,
        workloads: Sequence[Workload],
        solution: Solution,
        evaluation: Evaluation,
    ) -> Observation:
        """Profile a passing solution; never raises for failures of the solution or the machine."""
        ...


@dataclass
class ProfiledEvaluator(AroundReferee):
    """Evaluates with the referee, and adds metrics, findings and a classification to passing evaluations.

    The verdict is the referee's: status, reasons and times are never changed. A result faster than the speed
    of light also casts doubt on the ceilings: they are measured again, and if they rose the referee evaluates
    again.
    """

    referee: Evaluator
    device: DeviceSpec
    roofline: Roofline
    work: Mapping[str, Work]
    """Bytes and operations of one call, by definition hash."""
    observer: Observer | None = None
    """Reads hardware counters, if the device has some."""
    measure_again: Callable[[], Roofline] | None = None
    """Measures the ceilings again; None if they are fixed."""

    def evaluate(self, request: EvaluationRequest, *, progress: OnStage | None = None) -> Evaluation:
        """See `Evaluator`."""
        # It needs torch, which loads while the model does.
        from agentforge.referee.checks.speed_of_light import contradicted

        work = self.work.get(request.definition.hash)
        evaluation = self._ask(request, work, progress)
        if contradicted(evaluation) and self._risen():
            evaluation = self._ask(request, work, progress)
        if self.observer is not None and evaluation.passed and request.level is not Level.SMOKE:
            observed = self.observer.observe_evaluated(
                request.definition, request.workloads, request.solution, evaluation
            )
            evaluation = with_observation(evaluation, observed, work, self.device, self.roofline)
        return with_roofline(evaluation, work, self.device, self.roofline)

    def _ask(self, request: EvaluationRequest, work: Work | None, progress: OnStage | None) -> Evaluation:
        sol_s = self._speed_of_light(work, request.sol_s)
        return self.referee.evaluate(replace(request, sol_s=sol_s), progress=progress)

    def _speed_of_light(self, work: Work | None, sol_s: float | None) -> float | None:
        """The caller's speed of light, unless the ceilings rose since it was computed."""
        if work is None or sol_s is None:
            return sol_s
        return min(sol_s, speed_of_light(work, self.device, self.roofline).seconds)

    def _risen(self) -> bool:
        before = self.roofline
        if self.measure_again is not None:
            self.roofline = self.measure_again()
        return self.roofline != before


def with_observation(
    evaluation: Evaluation, seen: Observation, work: Work | None, device: DeviceSpec, roofline: Roofline
) -> Evaluation:
    """Add a profiler's observation of the same solution to its evaluation.

    If kernels were timed but no counters were read, their achieved rates are computed over the kernels' own
    time; the gaps between kernels are a separate metric.

    Raises:
        ValueError: the profile belongs to another solution.
    """
    if seen.solution != evaluation.solution:
        raise ValueError(f"the profile of {seen.solution} does not belong to {evaluation.solution}")
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
