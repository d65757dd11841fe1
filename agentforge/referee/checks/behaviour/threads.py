"""How many threads a candidate keeps busy."""

from __future__ import annotations

from agentforge.schema import Metric, merged_metrics

from .._base import BOTH_LEVELS, Check, CheckContext, When

_CALLS = 3
_LEAST_S = 1e-3
"""Shortest call that is measured, in seconds: in a shorter one, waking stopped threads takes much of the
time."""


class Threads(Check):
    """Compares processor time of a few calls with wall time. A metric, not a verdict.

    The worker is stopped around each call, so spinning between calls does not count.
    """

    name = "threads"
    levels = BOTH_LEVELS
    when = When.BEFORE_TIMING
    catches = "nothing; measures how many threads a call keeps busy (metric `threads_busy`)"

    def applies(self, context: CheckContext) -> bool:
        return super().applies(context) and context.first_group  # once is enough

    def run(self, context: CheckContext) -> str:
        candidate = context.candidate
        candidate.call(0)
        busy = wall = 0.0
        for _ in range(_CALLS):
            before = candidate.worker.cpu_seconds()
            took = candidate.call(0) / 1e9
            if took < _LEAST_S:
                return "calls are too short to tell"
            wall += took
            busy += candidate.worker.cpu_seconds() - before
        threads = busy / wall
        metric = Metric(name="threads_busy", value=threads, source="referee")
        context.findings.metrics = merged_metrics(context.findings.metrics, [metric])
        return f"{threads:.1f} of {context.settings.threads} threads busy"
