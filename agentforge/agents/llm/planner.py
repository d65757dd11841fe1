"""The planner: reads what was measured and what was tried, and proposes one strategy."""

from __future__ import annotations

import re
from typing import Any

from agentforge.agents._base import Past, Task
from agentforge.llm import Response, read, strict_schema
from agentforge.schema import Plan, Strategy, Usage

from . import facts
from .answers import PlanAnswer
from .asking import Objection, Role
from .history import closed_strategies, reflections, told
from .prompts import problem, render

_SCHEMA = strict_schema(PlanAnswer)
_MOST_STRATEGIES = 8
_MOST_REFLECTIONS = 12
_MOST_CLOSED = 12
_MOST_TOLD = 2
"""Lessons of one strategy."""


class LLMPlanner:
    """Asks a model for the next plan. A repair needs none: the judge's fix under the parent's plan is one."""

    def __init__(self, role: Role) -> None:
        self.name = role.model.spec
        self._role = role

    def plan(self, task: Task, parent: Past | None) -> Plan | None:
        """See `Planner.plan`."""
        closed = closed_strategies(task)
        repair = self._repair(parent, closed)
        if repair is not None:
            return repair
        if parent is not None and parent.plan is not None and parent.plan.strategy in closed:
            parent = None
        values = facts.of_task(task, parent)
        prompt = render(
            self._situation(parent, closed),
            facts=facts.shown(values),
            bottleneck=task.bottleneck,
            call_sites=task.bottleneck.call_sites[:4],
            strategies=[_described(s, task) for s in task.strategies if s.id not in closed][
                :_MOST_STRATEGIES
            ],
            reflections=reflections(task)[-_MOST_REFLECTIONS:],
            closed=dict(list(closed.items())[-_MOST_CLOSED:]),
            lessons=told(task),
            parent=parent,
            languages=task.languages,
        )

        def take(response: Response, again: bool) -> PlanAnswer:
            return self._accepted(response, closed, values, again)

        system = (render("planner/system.md.j2"), problem(task))
        answer, usage = self._role.ask(system, prompt, take, attempt=task.attempt, schema=_SCHEMA)
        return self._plan(task, answer, values).model_copy(update={"usage": usage})

    @staticmethod
    def _situation(parent: Past | None, closed: dict[str, str]) -> str:
        if parent is not None and parent.critique is not None:
            return "planner/improve.md.j2"
        return "planner/switch.md.j2" if closed else "planner/start.md.j2"

    def _repair(self, parent: Past | None, closed: dict[str, str]) -> Plan | None:
        """The parent's plan with the judge's fix as its only step; None where a new plan is due."""
        if parent is None or parent.plan is None or parent.critique is None:
            return None
        if parent.critique.kind != "repair" or parent.plan.strategy in closed:
            return None
        changes = {
            "diagnosis": parent.critique.cause or parent.plan.diagnosis,
            "evidence": parent.critique.evidence,
            "steps": (parent.critique.change or "mend the failure",),
            "parameters": {**parent.plan.parameters, **parent.critique.parameters},
            "author": self.name,
            "usage": Usage(),
        }
        return parent.plan.model_copy(update=changes)

    def _accepted(
        self, response: Response, closed: dict[str, str], values: facts.Facts, again: bool
    ) -> PlanAnswer:
        answer = read(PlanAnswer, response.parsed)
        if isinstance(answer, str):
            raise Objection(answer)
        strategy = _slug(answer.strategy)
        if strategy in closed:
            raise Objection(f"strategy {strategy!r} is closed: {closed[strategy]}; choose another one")
        problems = facts.invented(answer.evidence, values)
        if problems and not again:
            raise Objection("; ".join(problems))
        return answer.model_copy(update={"strategy": strategy})

    def _plan(self, task: Task, answer: PlanAnswer, values: facts.Facts) -> Plan:
        known = next((s for s in task.strategies if s.id == answer.strategy), None)
        language = next((x for x in task.languages if known and x in known.languages), task.languages[0])
        return Plan(
            strategy=answer.strategy,
            diagnosis=f"{answer.bottleneck.adjective}: {answer.diagnosis}",
            evidence=facts.true_ones(answer.evidence, values),
            steps=tuple(answer.steps),
            language=language,
            template=known.template if known else "",
            parameters=_parameters(answer, known),
            expected_speedup=answer.expected_speedup,
            risks=tuple(answer.risks),
            author=self.name,
        )


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:80] or "new-technique"


def _parameters(answer: PlanAnswer, known: Strategy | None) -> dict[str, int | float | str | bool]:
    """First guesses of the strategy's card, and what the model chose of the values that it allows."""
    if known is None:
        return {}
    parameters = {name: values[0] for name, values in known.parameters.items() if values}
    for chosen in answer.parameters:
        for value in known.parameters.get(chosen.name, ()):
            if str(value).lower() == str(chosen.value).lower():
                parameters[chosen.name] = value
    return parameters


def _described(strategy: Strategy, task: Task) -> dict[str, Any]:
    """A strategy with its record in this context."""
    here = [r for r in strategy.records if r.context == task.context]
    return {
        "id": strategy.id,
        "title": strategy.title,
        "summary": strategy.summary,
        "parameters": strategy.parameters,
        "wins": sum(r.n for r in here),
        "failures": sum(r.failures for r in here),
        "speedup": here[0].mean_log_speedup if here and here[0].n else None,
        "lessons": strategy.lessons[:_MOST_TOLD],
        "elsewhere": sum(r.n for r in strategy.records if r.context != task.context),
    }
