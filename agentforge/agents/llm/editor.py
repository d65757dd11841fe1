"""The LLM editor: changes one fragment of the coder's prompt."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from agentforge.agents._base import Past
from agentforge.llm import Response, strict_schema
from agentforge.schema import MOST_DIRECTIVE, BestBaseline

from .history import outcome, shown_files
from .prompts import render
from .role import Objection, Role, parsed
from .schemas import DirectiveAnswer

MOST_SOURCE = 6000
"""Most characters of an attempt's code; longer code is not shown."""

_SCHEMA = strict_schema(DirectiveAnswer)


class LLMEditor:
    """Asks a model for one edit. The call is in the run's ledger, so a resumed run gets the same text."""

    def __init__(self, role: Role) -> None:
        self.name = role.model.spec
        self._role = role

    def edit(self, text: str, others: Collection[str], examples: Sequence[tuple[Past, float]]) -> str:
        """See `Editor.edit`.

        Raises:
            CallFailed: no usable answer came.
            CannotAfford: the budget does not allow the call.
        """
        prompt = render(
            "editor/edit.md.j2", text=text, examples=[_shown(*one) for one in examples], most=MOST_DIRECTIVE
        )

        def take(response: Response, again: bool) -> str:
            written = parsed(DirectiveAnswer, response).fragment.strip()
            if written in others:
                raise Objection("this fragment exists already: change one thing in it")
            return written

        system = (render("editor/system.md.j2"),)
        return self._role.ask(system, prompt, take, attempt="", schema=_SCHEMA)[0]


def _shown(past: Past, gain: float) -> dict[str, Any]:
    """An attempt as the prompt names it."""
    source = "\n".join(file.content for file in shown_files(past.solution)) if past.solution else ""
    return {
        "strategy": past.plan.strategy if past.plan else "",
        "gain": gain,
        "outcome": outcome(past, BestBaseline.of([past.evaluation])),
        "cause": past.critique.cause if past.critique else "",
        "source": source if len(source) <= MOST_SOURCE else "",
    }
