"""A referee that keeps each verdict, so that an interrupted stitch repeats no finished evaluation."""

from __future__ import annotations

from collections.abc import Sequence

from agentforge.harness import Evaluator
from agentforge.loop import Journal
from agentforge.schema import Definition, Evaluation, Level, Solution, Workload


class Recorded:
    """Answers from the run's journal where it can, else asks `evaluator` and writes the answer down.

    Args:
        evaluator: the referee.
        journal: of the run; what an earlier run measured is not taken.
    """

    def __init__(self, evaluator: Evaluator, journal: Journal) -> None:
        self._evaluator = evaluator
        self._journal = journal

    def evaluate(
        self,
        definition: Definition,
        workloads: Sequence[Workload],
        solution: Solution,
        *,
        level: Level = Level.QUICK,
        sol_s: float | None = None,
    ) -> Evaluation:
        """See `Referee.evaluate`."""
        found = self._journal.finished_evaluation(definition, tuple(workloads), solution, level)
        if found is not None:
            return found[1]
        evaluation = self._evaluator.evaluate(definition, workloads, solution, level=level, sol_s=sol_s)
        self._journal.put_evaluation(evaluation)
        return evaluation
