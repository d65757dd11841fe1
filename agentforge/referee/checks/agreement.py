"""Are the measurements good enough for a verdict: do they say faster, slower or about the same?"""

from __future__ import annotations

from collections.abc import Sequence

from agentforge.schema import Performance, ReasonCode, baseline_name

from ..result import weighted
from ..timing import statistics
from ..timing.statistics import CONTROL_SLACK, undecided
from ..timing.timer import GroupTimes
from ._base import FULL_LEVEL, Check, CheckContext, When


def control_steady(context: CheckContext, group: Sequence[GroupTimes]) -> bool:
    """Whether the A/A' control of this process group is 1: the same baseline in two processes."""
    return statistics.control_steady(weighted(group, context.request.weights))


class Agreement(Check):
    """Doubts a measurement that decides nothing, and a gain that processor time denies on a disturbed
    machine."""

    name = "agreement"
    levels = FULL_LEVEL
    when = When.RESULT
    catches = "noise: the interval over all process groups, widened by the A/A' control, says nothing"

    def run(self, context: CheckContext) -> str:
        performance = context.findings.performance
        if performance is None:
            return ""
        for name in performance.speedup:
            code = noise(performance, name)
            if code is not None:
                context.findings.doubt(code, _sentence(performance, name, code))
        return f"control {performance.control}; intervals widened {performance.deviation:.2f} times"


def noise(performance: Performance, name: str) -> ReasonCode | None:
    """Why the speedup over a baseline decides nothing; None if it does.

    On a disturbed machine a gain also needs the baseline to take more processor time.
    """
    interval, disturbed = performance.speedup[name], performance.deviation > 1 + CONTROL_SLACK
    denied = disturbed and interval.low > 1 and performance.processor_ratio.get(name, 1.0) < 1
    if not (undecided(interval) or denied):
        return None
    return ReasonCode.NOISY_CONTROL if disturbed else ReasonCode.GROUPS_DISAGREE


def _sentence(performance: Performance, name: str, code: ReasonCode) -> str:
    over = f"against {baseline_name(name)}, {performance.speedup[name]} decides nothing"
    if code is ReasonCode.NOISY_CONTROL:
        over += f": the same baseline in two processes differs {performance.deviation:.2f} times"
    return f"{over}; measure again on a quieter machine, or give it more time (--patience SECONDS)"
