"""Asking a model in a role: an answer that does not do is sent back, a bounded number of times."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from agentforge.config import LLMSettings
from agentforge.llm import CallFailed, LanguageModel, Ledger, Message, Request, Response
from agentforge.schema import Usage

from .prompts import render

T = TypeVar("T")

SENT_BACK = 2
"""Times that an answer is sent back before the role gives up."""

MOST_CHARACTERS = 90_000
"""Of a prompt that grows by answers sent back, some 30k tokens: beyond it only the last one stays."""


class Objection(Exception):
    """Why an answer does not do; its author reads the message."""


@dataclass(frozen=True)
class Role:
    """A model in a role.

    Args:
        name: `planner`, `coder` or `judge`.
        model: who is asked.
        ledger: the run's.
        settings: tokens, effort, seed.
    """

    name: str
    model: LanguageModel
    ledger: Ledger
    settings: LLMSettings

    def ask(
        self,
        system: tuple[str, ...],
        prompt: str,
        take: Callable[[Response, bool], T],
        *,
        attempt: str,
        schema: dict[str, Any] | None = None,
    ) -> tuple[T, Usage]:
        """What `take` makes of the answer, and what all calls cost.

        Args:
            system: parts of the system prompt, the ones that change least first.
            prompt: the question.
            take: reads an answer; raises `Objection` to send it back. The flag says that one was sent
                back before, so that what is usable may be used.
            attempt: identifier of the attempt, for the journal.
            schema: of the answer.

        Raises:
            CallFailed: no usable answer came.
            CannotAfford: the budget does not allow the call.
        """
        request = first = Request(
            system=system,
            messages=(Message(role="user", text=prompt),),
            answer_schema=schema,
            max_tokens=self.settings.max_tokens,
            effort=self.settings.effort,
            seed=self.settings.seed,
        )
        usage = Usage()
        for left in range(SENT_BACK, -1, -1):
            answer = self.ledger.ask(self.model, request, role=self.name, attempt=attempt)
            usage = _sum(usage, answer.usage)
            try:
                return take(_whole(answer.response), left < SENT_BACK), usage
            except Objection as objection:
                last = str(objection)
                said = answer.response.text, render("shared/again.md.j2", role=self.name, objection=last)
                longer = request.then(*said)
                request = longer if longer.characters <= MOST_CHARACTERS else first.then(*said)
        raise CallFailed(f"{self.model.spec}: {SENT_BACK + 1} answers did not do: {last}")


def _whole(response: Response) -> Response:
    if response.stop == "length":
        raise Objection("your answer was cut off at the limit of tokens: answer again, shorter")
    if not response.text.strip():
        raise Objection("your answer was empty")
    return response


def _sum(a: Usage, b: Usage) -> Usage:
    return Usage(
        seconds=a.seconds + b.seconds,
        tokens_in=a.tokens_in + b.tokens_in,
        tokens_out=a.tokens_out + b.tokens_out,
        tokens_cached=a.tokens_cached + b.tokens_cached,
        dollars=None if a.dollars is None or b.dollars is None else a.dollars + b.dollars,
    )
