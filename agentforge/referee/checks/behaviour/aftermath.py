"""Work that goes on after the answer."""

from __future__ import annotations

import time

from agentforge.referee.workers.failures import WorkerFailure
from agentforge.schema import EvaluationStatus, ReasonCode

from .._base import BOTH_LEVELS, Check, CheckContext, When

_SETTLES_S = (0.03, 0.03, 0.1, 0.3)
"""Waits before the looks. A thread pool spins for some 30 ms before it sleeps, longer on a busy machine."""
_WINDOW_S = 0.04
_BUSY = 0.1
"""Processors busy without a request, above which the candidate cheats."""


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
        left = candidate.worker.others()
        for settle in _SETTLES_S:
            busy = self._load(context, left, settle)
            if busy <= _BUSY:
                break
        else:
            raise WorkerFailure(
                EvaluationStatus.CHEATING,
                f"it goes on working after its answer: {busy:.1f} processors are busy without a request",
            )
        if left:
            context.findings.suspect(
                ReasonCode.MORE_PROCESSES, f"it left {len(left)} more processes running after its answer"
            )
        return f"{busy:.2f} processors busy after the answer, {len(left)} processes beside its own"

    def _load(self, context: CheckContext, left: list[int], settle_s: float) -> float:
        worker = context.candidate.worker
        time.sleep(settle_s)
        before, start = worker.cpu_seconds(left), time.perf_counter()
        time.sleep(_WINDOW_S)
        return (worker.cpu_seconds(left) - before) / (time.perf_counter() - start)
