"""Other numbers of threads."""

from __future__ import annotations

from agentforge.referee.comparison.comparator import OutputComparator
from agentforge.referee.workers.failures import WorkerFailure
from agentforge.schema import EvaluationStatus

from .._base import FULL_LEVEL, Check, CheckContext, When

_MORE = 3


class ThreadCounts(Check):
    """Compares an answer with one thread, and an answer with three more threads than are timed."""

    name = "thread counts"
    levels = FULL_LEVEL
    when = When.EXAMINATION
    condition = "for C++ kernels"
    catches = "kernels that are right with one number of threads only"

    def applies(self, context: CheckContext) -> bool:
        return context.sanitized is not None

    def run(self, context: CheckContext) -> str:
        prepared, baselines, builder = context.prepared, context.baselines, context.builder
        prepared.inputs.fill(0)
        expected = baselines.expect(prepared, 0)
        harder = context.harder(0, expected)
        done = []
        for threads in (1, builder.settings.threads + _MORE):
            other = builder.like(builder.settings.model_copy(update={"threads": threads}))
            try:
                candidate = other.start(context.solution, context.folder, baselines, prepared)
            except WorkerFailure as failure:
                if failure.status is EvaluationStatus.RUNTIME_ERROR:
                    continue
                raise
            try:
                candidate.client.call(0)
                situation = f"with {threads} thread{'s' if threads > 1 else ''}"
                got = candidate.client.fetch(0)
                OutputComparator().check(got, expected, prepared.bounds, situation, harder.all)
                done.append(str(threads))
            finally:
                candidate.close()
        return f"right with {' and '.join(done) or 'no other number of'} threads"
