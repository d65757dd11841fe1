"""Several proposers in one role: the cheaper one goes on while it gains, then the next has its turn."""

from __future__ import annotations

from collections.abc import Sequence

from agentforge.schema import Critique, Evaluation, Plan, Solution

from ._base import CannotCode, Coder, Draft, Judge, Past, Planner, Task

PATIENCE = 3
"""Attempts in a row without a new fastest one after which a planner makes room for the next."""


class ChainPlanner:
    """Asks the first planner that still gains and has something to propose; the last one always may.

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
            if _since_gain(task, planner.name) < PATIENCE:
                plan = planner.plan(task, parent)
                if plan is not None:
                    return plan
        return last.plan(task, parent)


class ChainCoder:
    """Gives each plan to the first coder that can carry it out.

    Args:
        coders: cheapest first.
    """

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
    """Lets the judge of the planner's kind judge; the last one judges what has no judge of its kind.

    Args:
        judges: cheapest first.
    """

    def __init__(self, judges: Sequence[Judge]) -> None:
        self.name = ",".join(judge.name for judge in judges)
        self._judges = tuple(judges)

    def judge(self, task: Task, plan: Plan, solution: Solution, evaluation: Evaluation) -> Critique:
        """See `Judge.judge`."""
        own = next((judge for judge in self._judges if judge.name == plan.author), self._judges[-1])
        return own.judge(task, plan, solution, evaluation)


def _since_gain(task: Task, author: str) -> int:
    """Attempts of an author since the one that was faster than all before it."""
    best, count = 1.0, 0
    for past in task.past:
        if past.id == task.attempt or past.plan is None:
            continue
        performance = past.evaluation.performance if past.evaluation else None
        gain = performance.speedup_over_best.point if performance and performance.speedup else 0.0
        if gain > best:
            best, count = gain, 0
        elif past.plan.author == author:
            count += 1
    return count
