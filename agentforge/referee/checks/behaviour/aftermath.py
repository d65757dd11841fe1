"""Work that goes on after the answer."""

from __future__ import annotations

import time

from agentforge.isolation import procfs
from agentforge.referee.workers.failures import WorkerFailure
from agentforge.schema import EvaluationStatus, ReasonCode

from .._base import BOTH_LEVELS, Check, CheckContext, When

_SETTLES_S = (0.03, 0.03, 0.1, 0.3, 0.3)
"""Waits before the looks. A thread pool spins for some 30 ms before it sleeps, longer on a busy machine."""
_WINDOW_S = 0.04
_BUSY = 0.1
"""Processors busy without a request, above which a look is not quiet."""
_SPIN_S = 0.15
"""Processor time after an answer, of each thread, that a spinning pool explains."""


class Aftermath(Check):
    """Measures processor time and counts processes after an answer."""

    name = "aftermath"
    levels = BOTH_LEVELS
    catches = "threads that work, and processes that run, after the answer"

    def __init__(self, when: When) -> None:
        self.when = when

    def run(self, context: CheckContext) -> str:
        candidate = context.candidate
        candidate.call(0)
        candidate.worker.resume()
        begin = now = self._processor_s(context)
        looks: list[float] = []
        for settle_s in _SETTLES_S:
            time.sleep(settle_s)
            before, start = self._processor_s(context), time.perf_counter()
            time.sleep(_WINDOW_S)
            now = self._processor_s(context)
            looks.append(_between(before, now) / (time.perf_counter() - start))
            if max(looks[-2:]) <= _BUSY:
                break
        else:
            raise WorkerFailure(
                EvaluationStatus.CHEATING,
                "it goes on working after its answer: "
                f"{max(looks[-2:]):.1f} processors are busy without a request",
            )
        spent, left = _between(begin, now), len(begin) - 1
        if spent > _SPIN_S * context.settings.threads:
            context.findings.doubt(
                ReasonCode.DEFERRED_WORK,
                f"after its answer it used {spent:.2f} s of processor time; put its threads to sleep",
            )
        if left:
            context.findings.suspect(
                ReasonCode.MORE_PROCESSES, f"it left {left} more processes running after its answer"
            )
        return f"{looks[-1]:.2f} processors busy after the answer, {left} processes beside its own"

    def _processor_s(self, context: CheckContext) -> dict[int, float]:
        worker = context.candidate.worker
        return {pid: procfs.cpu_seconds(pid) for pid in (worker.pid, *worker.others())}


def _between(before: dict[int, float], now: dict[int, float]) -> float:
    """Processor time of processes that are still there; a new one counts from its beginning."""
    return sum(max(0.0, seconds - before.get(pid, 0.0)) for pid, seconds in now.items())
