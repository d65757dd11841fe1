"""The LLM planner: reads measurements and earlier attempts, and proposes one strategy."""

from __future__ import annotations

import re
from typing import Any

from agentforge.agents._base import NothingLeft, Past, Task, call_failed
from agentforge.agents.playbook.facts import SEED
from agentforge.llm import Response, strict_schema
from agentforge.schema import CardKind, Plan, Strategy, Usage

from . import facts
from .history import best_lessons, closed_strategies, earlier_attempts, number_of, reflections
from .prompts import problem, render, simulated, with_advice, with_target
from .role import Objection, Role, parsed
from .schemas import LearnedPlanAnswer, PlanAnswer

GENERATED_ONLY = frozenset({SEED, "strict-math"})
"""Strategies for the playbook alone: one takes Inductor's code, the other changes the compiler's flags."""

_ADVICE = (CardKind.AVOID, CardKind.SYMPTOM, CardKind.HARDWARE)
_STRATEGIES = "shared/_strategies.md.j2"
_SCHEMA, _LEARNED_SCHEMA = strict_schema(PlanAnswer), strict_schema(LearnedPlanAnswer)
_MOST_STRATEGIES = 8
_MOST_CHARACTERS = 8000
"""Of all strategies in a prompt; those with the lowest expected speedup are left out first."""
_MOST_REFLECTIONS = 12
_MOST_CLOSED = 12
_MOST_SPEEDUP = 1e4
_MOST_TOLD = 2
"""Most lessons of one strategy in a prompt."""


class LLMPlanner:
    """Asks a model for the next plan. The judge's change needs no call: it is added to the parent's plan."""

    def __init__(self, role: Role) -> None:
        self.name = role.model.spec
        self._role = role

    def plan(self, task: Task, parent: Past | None) -> Plan | None:
        """See `Planner.plan`."""
        closed = closed_strategies(task)
        changed = self._changed(task, parent, closed)
        if changed is not None:
            return changed
        if parent is not None and parent.plan is not None and parent.plan.strategy in closed:
            if parent.evaluation is not None and parent.evaluation.passed:
                return None  # its code would be built upon with another strategy's plan
            parent = None
        values, measured = facts.of_task(task, parent), parent.evaluation if parent else None
        shown = [s for s in task.strategies if s.id not in closed and s.id not in GENERATED_ONLY]
        strategies = _fitting([_described(strategy, task) for strategy in shown[:_MOST_STRATEGIES]])
        task.served.update(strategy["id"] for strategy in strategies)
        prompt = render(
            self._template(parent, closed),
            facts=facts.prompt_lines(values),
            bottleneck=task.bottleneck,
            call_sites=task.bottleneck.call_sites[:4],
            strategies=strategies,
            steady=measured is None or facts.steady(measured),
            limit=facts.classification(measured) if measured else None,
            calls=len(task.bottleneck.call_sites),
            reflections=reflections(task)[-_MOST_REFLECTIONS:],
            closed=dict(list(closed.items())[-_MOST_CLOSED:]),
            lessons=(lessons := best_lessons(task)),
            parent=parent,
            taken=_taken(task, parent),
            languages=task.languages,
        )
        prompt = with_target(prompt, task)
        operators = " ".join(o for site in task.bottleneck.call_sites for o in site.operators)
        prompt = with_advice(prompt, task, _ADVICE, measured, f"{task.context.op_type} {operators}")

        def take(response: Response, again: bool) -> LearnedPlanAnswer:
            return self._accepted(response, closed, values, again)

        system = (problem(task), render("planner/system.md.j2", simulated=simulated(task)))
        schema = _LEARNED_SCHEMA if lessons else _SCHEMA
        answer, usage = self._role.ask(system, prompt, take, attempt=task.attempt, schema=schema)
        if answer.nothing_left:
            raise NothingLeft(answer.diagnosis)
        uses = tuple(lesson.number for lesson in lessons if lesson.number in answer.uses)
        return self._plan(task, answer, values).model_copy(update={"usage": usage, "uses": uses})

    @staticmethod
    def _template(parent: Past | None, closed: dict[str, str]) -> str:
        if parent is not None and parent.critique is not None:
            return "planner/improve.md.j2"
        return "planner/switch.md.j2" if closed else "planner/start.md.j2"

    def _changed(self, task: Task, parent: Past | None, closed: dict[str, str]) -> Plan | None:
        """The parent's plan with the judge's change as a further step; None if a new plan is needed."""
        if parent is None or parent.plan is None or parent.critique is None:
            return None
        critique, plan = parent.critique, parent.plan
        if plan.strategy in closed or critique.kind not in ("repair", "optimize"):
            return None
        expected = plan.expected_speedup
        if critique.kind == "optimize":
            used = any(p.parent == parent.id and not call_failed(p) for p in earlier_attempts(task))
            gain = task.best_baseline.speedup(parent.evaluation)
            if task.aim or used or gain is None or not critique.change or critique.author == "supervisor":
                return None  # a rule's critique names no change, and one is carried out once
            expected = gain * (1.0 + max(0.0, critique.expected_gain))
        task.served.update(critique.served)
        what = "Repair" if critique.kind == "repair" else "Improve"
        change = critique.change or "fix what the referee reports"
        changes = {
            "change": f"{critique.cause}: {change}" if critique.cause else change,
            "evidence": critique.evidence,
            "steps": (*plan.steps, f"{what} attempt {number_of(parent)}: {change}"),
            "parameters": {**plan.parameters, **critique.parameters},
            "expected_speedup": min(expected, _MOST_SPEEDUP),
            "uses": plan.uses if critique.kind == "repair" else (),  # a change rests on its judge
            "author": self.name,
            "usage": Usage(),
        }
        return plan.model_copy(update=changes)

    def _accepted(
        self, response: Response, closed: dict[str, str], values: facts.Facts, again: bool
    ) -> LearnedPlanAnswer:
        answer = parsed(LearnedPlanAnswer, response)
        if answer.nothing_left:
            return answer
        if not answer.strategy.strip() or not answer.steps:
            raise Objection("a plan needs a strategy and its steps; set nothing_left if there is none")
        strategy = _slug(answer.strategy)
        if strategy in closed:
            raise Objection(f"strategy {strategy!r} is closed: {closed[strategy]}; choose another one")
        if strategy in GENERATED_ONLY:
            raise Objection(f"strategy {strategy!r} needs the playbook's generator; choose another one")
        if not again and (problem_ := facts.objection_to(answer.evidence, values)):
            raise Objection(problem_)
        return answer.model_copy(update={"strategy": strategy})

    def _plan(self, task: Task, answer: PlanAnswer, values: facts.Facts) -> Plan:
        known = next((s for s in task.strategies if s.id == answer.strategy), None)
        language = next((x for x in task.languages if known and x in known.languages), task.languages[0])
        return Plan(
            strategy=answer.strategy,
            diagnosis=f"{answer.bottleneck.adjective}: {answer.diagnosis}",
            evidence=facts.valid_citations(answer.evidence, values),
            steps=tuple(answer.steps),
            language=language,
            template=known.template if known else "",
            parameters=_parameters(answer, known),
            expected_speedup=answer.expected_speedup,
            risks=tuple(answer.risks),
            author=self.name,
        )


def _taken(task: Task, parent: Past | None) -> str:
    """The attempt that carries the judge's change to `parent` out, for example `#3`; empty if none does."""
    built = (p for p in earlier_attempts(task) if parent is not None and p.parent == parent.id)
    return next((number_of(p) for p in built if p.plan and p.plan.change and not call_failed(p)), "")


def _slug(text: str) -> str:
    """A strategy's identifier: letters and digits of any script, so that two ideas have two."""
    return re.sub(r"[\W_]+", "-", text.lower()).strip("-")[:80] or "new-technique"


def _parameters(answer: PlanAnswer, known: Strategy | None) -> dict[str, int | float | str | bool]:
    """The model's choices among the values that the strategy's card allows."""
    if known is None:
        return {}
    parameters: dict[str, int | float | str | bool] = {}
    for chosen in answer.parameters:
        for value in known.parameters.get(chosen.name, ()):
            if str(value).lower() == str(chosen.value).lower():
                parameters[chosen.name] = value
    return parameters


def _fitting(described: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The first strategies, at least one, that fit their section of the prompt."""
    most = len(described)
    while most > 1 and len(render(_STRATEGIES, strategies=described[:most])) > _MOST_CHARACTERS:
        most -= 1
    return described[:most]


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
        "credit": here[0].mean_credit if here else None,
        "lessons": strategy.lessons[:_MOST_TOLD],
        "elsewhere": sum(r.n for r in strategy.records if r.context != task.context),
    }
