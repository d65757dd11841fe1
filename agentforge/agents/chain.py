"""Several agents in one role: the cheapest one works while it gains, then the next one takes over."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from agentforge.schema import CannotCode, Critique, Evaluation, Plan, Solution

from ._base import Coder, Draft, Judge, NothingLeft, Past, Planner, Task

PATIENCE = 3
"""A planner hands over after this many attempts in a row without a new fastest one."""


class ChainPlanner:
    """Asks the first planner that still gains and has a proposal. The last planner may always propose.

    Args:
        planners: cheapest first.
    """

    def __init__(self, planners: Sequence[Planner]) -> None:
        self.name = ",".join(planner.name for planner in planners)
        self._planners = tuple(planners)

    def plan(self, task: Task, parent: Past | None) -> Plan | None:
        """See `Planner.plan`."""
        *cheaper, last = self._planners
        for planner in cheaper:
            if _attempts_since_gain(task, planner.name) < PATIENCE:
                with suppress(NothingLeft):
                    plan = planner.plan(task, parent)
                    if plan is not None:
                        return plan
        return last.plan(task, parent)


class ChainCoder:
    """Gives each plan to the first coder that can carry it out."""

    def __init__(self, coders: Sequence[Coder]) -> None:
        self.name = ",".join(coder.name for coder in coders)
        self._coders = tuple(coders)

    def code(self, task: Task, plan: Plan, parent: Past | None) -> Draft:
        """See `Coder.code`."""
        *others, last = sorted(self._coders, key=lambda coder: coder.name != plan.author)
        for coder in others:
            try:
                return coder.code(task, plan, parent)
            except CannotCode:
                continue
        return last.code(task, plan, parent)


class ChainJudge:
    """Asks the judge of the same kind as the planner, or the last judge if there is none."""

    def __init__(self, judges: Sequence[Judge]) -> None:
        self.name = ",".join(judge.name for judge in judges)
        self._judges = tuple(judges)

    def judge(self, task: Task, plan: Plan, solution: Solution, evaluation: Evaluation) -> Critique:
        """See `Judge.judge`."""
        own = next((judge for judge in self._judges if judge.name == plan.author), self._judges[-1])
        return own.judge(task, plan, solution, evaluation)


def _attempts_since_gain(task: Task, author: str) -> int:
    """Number of an author's attempts since the last one that was faster than all before it."""
    best, count = 1.0, 0
    for past in task.past:
        if past.id == task.attempt or past.plan is None:
            continue
        gain = task.best_baseline.speedup(past.evaluation) or 0.0
        if gain > best:
            best, count = gain, 0
        elif past.plan.author == author:
            count += 1
    return count
