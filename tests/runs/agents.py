"""Real, if modest, agents: each plan gives the definition's own code back, so that nothing is faster."""

from __future__ import annotations

import os
import signal

from agentforge.agents import Draft, Past, Task
from agentforge.problems.reference_solution import reference_solution
from agentforge.schema import Critique, Evaluation, Plan, Solution


class EchoPlanner:
    """One plan for each bottleneck."""

    name = "echo"

    def plan(self, task: Task, parent: Past | None) -> Plan | None:
        return None if task.past else Plan(strategy="echo", language="python")


class EchoCoder:
    """The definition's own source, under the name that a solution has."""

    name = "echo"

    def code(self, task: Task, plan: Plan, parent: Past | None) -> Draft:
        return Draft(reference_solution(task.bottleneck.definition))


TWICE = """class ModelNew(Model):
    def forward(self, *inputs):
        return super().forward(*inputs) * 2
"""


class WrongCoder(EchoCoder):
    """Each answer is twice the right one."""

    def code(self, task: Task, plan: Plan, parent: Past | None) -> Draft:
        return Draft(reference_solution(task.bottleneck.definition, TWICE))


class InterruptedCoder(EchoCoder):
    """Somebody presses Ctrl-C while it thinks."""

    def code(self, task: Task, plan: Plan, parent: Past | None) -> Draft:
        os.kill(os.getpid(), signal.SIGINT)
        return super().code(task, plan, parent)


class EchoJudge:
    """Nothing left to gain."""

    name = "echo"

    def judge(self, task: Task, plan: Plan, solution: Solution, evaluation: Evaluation) -> Critique:
        return Critique(kind="accept" if evaluation.passed else "abandon")
