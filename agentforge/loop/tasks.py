"""What the agents are shown of a bottleneck and of the attempts before theirs."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from agentforge.agents import Aim, Hardware, NothingLeft, Past, Planner, Task
from agentforge.agents.playbook.facts import best
from agentforge.knowledge import Advisor, KnowledgeBase
from agentforge.schema import Attempt, Context, Directives, Plan, Precedent, Strategy
from agentforge.search import Cell, cell_of, dimensions, mean_gains

from ._base import SearchedBottleneck
from .bottleneck_state import gain_over_eager
from .lessons import learned
from .run_log import RunLog

_IDENTIFIER = re.compile(r"\w+(?:[-.]\w+)*")
"""Words as cards are named."""
_PLAN_ONLY: Mapping[str, Any] = {
    "solution": None, "evaluation": None, "critique": None, "error": "", "trials": (),
}  # fmt: skip
"""What attempts that are written at the same time show of each other."""


@dataclass(frozen=True)
class Tasks:
    """Makes the tasks of a run's agents."""

    bottlenecks: Mapping[str, SearchedBottleneck]
    """By hash of the definition."""
    run_log: RunLog
    knowledge: KnowledgeBase
    language: str
    """That solutions are written in."""
    hardware: Hardware
    device: str
    """Kind of device: `cpu`, `cuda`."""
    advice_tokens: int = 600
    """Most tokens of cards in one prompt, other than techniques."""
    tunable: bool = False
    """Whether `@tune` comments are followed."""
    contrast_tokens: int = 0
    """Most tokens of solutions of earlier runs in one prompt; 0 shows none."""

    def task(
        self,
        bottleneck: str,
        attempt: str,
        *,
        parent: str | None = None,
        target: Cell = (),
        hide_solutions_from: int | None = None,
        hide_critiques_from: int | None = None,
    ) -> Task:
        """The task of one attempt.

        What they have already is hidden from each other, so that an agent is asked the same question again
        after a kill.

        Args:
            parent: the attempt to build on; the strategies that paid after its own come first.
            target: the cell that the policy asks for, if the attempt is not stored yet.
            hide_solutions_from: attempts from this number on show their plan only.
            hide_critiques_from: attempts from this number on do not show their critique.
        """
        searched = self.bottlenecks[bottleneck]
        past = self.run_log.past(bottleneck)
        if hide_solutions_from is not None:
            past = self._hidden(past, attempt, hide_solutions_from, _PLAN_ONLY)
        if hide_critiques_from is not None:
            past = self._hidden(past, attempt, hide_critiques_from, {"critique": None})
        stored = self.run_log.attempt(attempt)
        aim = _aim(past, stored.target, stored.parent) if stored else _aim(past, target, parent)
        before = find(past, parent)
        after = before.plan.strategy if before is not None and before.plan is not None else ""
        return Task(
            bottleneck=searched.bottleneck,
            hardware=self.hardware,
            context=searched.context,
            strategies=self._strategies(searched.context, after),
            languages=(self.language,),
            past=past,
            attempt=attempt,
            aim=aim,
            coder=stored.coder if stored else "",
            directive=self._directive(stored.directive) if stored else "",
            precedents=partial(self._precedents, searched) if self.contrast_tokens else None,
            contrast_tokens=self.contrast_tokens,
            tunable=self.tunable,
            lessons=learned(self.run_log, self.bottlenecks),
            advise=Advisor(
                self.knowledge.advice, searched.context, (self.language,), self.device, self.advice_tokens
            ),
        )

    def _strategies(self, context: Context, after: str) -> tuple[Strategy, ...]:
        """Those of the knowledge base without what this run taught it, which `Task.lessons` has: a run that
        goes on asks the same questions."""
        own = self.run_log.run.id
        return tuple(
            s.model_copy(update={"lessons": tuple(lesson for lesson in s.lessons if lesson.run != own)})
            if s.lessons
            else s
            for s in self.knowledge.retrieve(context, (self.language,), self.device, after=after)
        )

    def _directive(self, identifier: str) -> str:
        """The text of a directive; empty without one."""
        known = self.run_log.record(Directives) if identifier else None
        return next((one.text for one in known.written if one.id == identifier), "") if known else ""

    def _precedents(self, searched: SearchedBottleneck, language: str) -> tuple[Precedent, ...]:
        definition, begun = searched.bottleneck.definition.hash, self.run_log.run.created
        return self.knowledge.precedents(definition, searched.context, language, begun)

    def _hidden(
        self, past: tuple[Past, ...], own: str, first: int, changes: Mapping[str, Any]
    ) -> tuple[Past, ...]:
        together = {p.id for p in past if p.id != own and self.run_log.number(p.id) >= first}
        return tuple(replace(p, **changes) if p.id in together else p for p in past)


def _aim(past: Sequence[Past], target: Cell, parent: str | None) -> Aim | None:
    """What the machine code of an attempt shall be, and what such moves brought; None without a target.

    Of a repair, the levels now are those of the nearest attempt before it that passed: a failure has none.
    """
    base = find(past, parent)
    while base is not None and not (base.evaluation and base.evaluation.passed):
        base = find(past, base.parent)
    if not target or base is None or base.evaluation is None:
        return None
    cells = {p.id: cell_of(p.evaluation) for p in past}
    gains = {p.id: math.log(gain) for p in past if (gain := gain_over_eager(p.evaluation))}
    moves = mean_gains(
        (cells[p.parent], cells[p.id], gains[p.id] - gains[p.parent])
        for p in past
        if p.parent is not None and p.parent in gains and p.id in gains
    )
    names = dimensions(base.evaluation)
    wanted = zip(names, cells[base.id], target, strict=False)
    levels = tuple((name, now, level) for name, now, level in wanted if now != level)
    if not levels:
        return None
    shown = tuple((names[at], way, math.exp(gain), n) for (at, way), (gain, n) in sorted(moves.items()))
    return Aim(levels, shown)


def with_cards(attempt: Attempt, served: Collection[str], **changes: object) -> Attempt:
    """The attempt with these changes, with the cards that one more of its agents was shown, and with those of
    them that its plan names."""
    attempt = attempt.model_copy(update=changes)
    plan, every = attempt.plan, sorted({*attempt.served, *served})
    if plan is None:
        return attempt
    said = " ".join((plan.strategy, plan.diagnosis, plan.change, *plan.steps, *plan.risks))
    words = set(_IDENTIFIER.findall(said.lower()))
    cited = tuple(card for card in every if card.lower() in words)
    return attempt.model_copy(update={"served": tuple(every), "cited": cited})


def first_plan(planner: Planner, task: Task, parent: str | None) -> tuple[Plan | None, str | None]:
    """A plan on the chosen parent; if there is none, from the definition, then on the fastest that builds on
    no cheat."""
    fastest = best(task)
    for candidate in dict.fromkeys((parent, None, fastest.id if fastest else None)):
        try:
            plan = planner.plan(task, find(task.past, candidate))
        except NothingLeft:
            break
        if plan is not None:
            return plan, candidate
    return None, parent


def find(past: Sequence[Past], identifier: str | None) -> Past | None:
    """The attempt of this identifier."""
    return next((p for p in past if p.id == identifier), None)
