"""How many threads a candidate keeps busy."""

from __future__ import annotations

from agentforge.schema import Level, Metric

from ._base import Context

_CALLS = 3
_LEAST_S = 1e-3
"""Waking the threads of a stopped process is a large part of a shorter call."""


class Threads:
    """Processor time of a few calls against the supervisor's clock.

    The worker stands still before and after each call, so that threads which spin between calls do not
    count. A metric and no verdict: a thread that a call starts and joins is gone when its time is read.
    """

    name = "threads"
    levels: tuple[Level, ...] = (Level.QUICK, Level.FULL)

    def run(self, context: Context) -> str:
        candidate = context.candidate
        candidate.call(0)
        busy = wall = 0.0
        for _ in range(_CALLS):
            before = candidate.worker.cpu_seconds([])
            took = candidate.call(0) / 1e9
            if took < _LEAST_S:
                return "calls are too short to tell"
            wall += took
            busy += candidate.worker.cpu_seconds([]) - before
        threads = busy / wall
        context.metrics.append(Metric(name="threads_busy", value=threads, source="referee"))
        return f"{threads:.1f} of {context.settings.threads} threads busy"
