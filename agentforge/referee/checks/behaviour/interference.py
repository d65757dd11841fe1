"""Whether a candidate slows the reference down.

A kernel left running on a GPU shares it with the next timed worker. So the reference is timed before the
candidate starts and after it ended, and must not be much slower in between.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from agentforge.referee.baselines.baselines import Baselines
from agentforge.referee.timing.timer import GroupTimes
from agentforge.schema import ReasonCode

from .._base import BOTH_LEVELS, Check, CheckContext, When

_CALLS = 6
_SLOWER, _LEAST_S = 1.5, 5e-5
"""Interference threshold: 1.5x slower and at least 50 us."""


class Interference(Check):
    """Times the reference without the candidate, before and after each process group."""

    name = "alone"
    levels = BOTH_LEVELS
    condition = "on a GPU"
    catches = "work left on the device that slows the reference down"

    def __init__(self, when: When) -> None:
        self.when = when

    def applies(self, context: CheckContext) -> bool:
        return context.builder.backend.remote

    def run(self, context: CheckContext) -> str:
        with context.builder.lock(context.request.deadline):
            seconds = reference_seconds(context.baselines)
        if self.when is When.GROUP_START:
            context.reference_alone_s = seconds
        elif context.group_times:
            text = slowdown(context.reference_alone_s, context.group_times, seconds)
            if text:
                context.findings.doubt(ReasonCode.INTERFERENCE, text)
        return f"the reference takes {', '.join(f'{s * 1e3:.3f} ms' for s in seconds)} without it"


def reference_seconds(baselines: Baselines) -> list[float]:
    """Median seconds of an eager call of each workload, while no candidate runs."""
    found = []
    for prepared in baselines.prepared:
        baselines.enter(prepared)
        prepared.inputs.fill(0)
        found.append(median(baselines.eager.call(0) for _ in range(_CALLS)) / 1e9)
        baselines.stop()
    return found


def slowdown(before: Sequence[float], times: Sequence[GroupTimes], after: Sequence[float]) -> str:
    """Why the candidate may have slowed the reference down; empty if it did not."""
    for first, group, last in zip(before, times, after, strict=True):
        beside = median(group.seconds["eager"])
        if beside > _SLOWER * max(first, last) + _LEAST_S:
            return (
                f"the reference takes {beside * 1e3:.3f} ms beside it, {first * 1e3:.3f} ms before and "
                f"{last * 1e3:.3f} ms after: it left work on the device, or something else disturbs: "
                f"measure again"
            )
    return ""
