"""Ask a model in a role. An unusable answer is sent back, a limited number of times."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial, reduce
from typing import Any, TypeVar

from pydantic import BaseModel

from agentforge.config import LLMSettings
from agentforge.llm import (
    Answer,
    CallFailed,
    CannotAfford,
    LanguageModel,
    Ledger,
    Message,
    NoUsableAnswer,
    OutOfTime,
    Request,
    Response,
    ToolCall,
    ToolResult,
    ToolSpec,
    read,
)
from agentforge.schema import Usage

from .prompts import render

T = TypeVar("T")
Structured = TypeVar("Structured", bound=BaseModel)

SENT_BACK = 2
"""Most times that an answer is sent back before the role gives up."""

MOST_CHARACTERS = 90_000
"""Most characters of a prompt that grows by rejected answers (about 30k tokens). Beyond it, only the last one
is kept."""


_MOST_TOKENS = {"planner": 8192, "judge": 8192}
"""Most tokens of an answer by role, if the settings name none."""
_NO_CALLS_LEFT = "no calls are left: answer now with the code"
_CUT = " (raise llm.max_tokens, set a lower llm.effort, or give the server a longer context)"
"""For the user, after an answer that was cut off."""


class Objection(Exception):
    """Why an answer cannot be used. The model reads the message."""


class Feedback(Objection):
    """An answer was read, and its code fails. The message is the whole next turn of the conversation."""


@dataclass(frozen=True)
class Role:
    """A model in a role."""

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
        feedback: int = 0,
        tools: tuple[ToolSpec, ...] = (),
        run_tool: Callable[[ToolCall], str] = lambda call: "there are no tools: answer now",
        newest: Callable[[], str] = lambda: "",
    ) -> tuple[T, Usage]:
        """Ask until `take` accepts an answer. Returns what `take` returned and the usage of all calls.

        Args:
            system: parts of the system prompt, the least changing first.
            take: reads an answer and raises `Objection` to send it back. The flag is True if an answer was
                sent back before; `take` may then use the parts that are valid.
            feedback: most answers that `take` may reply to with `Feedback`; they do not count as sent back.
            tools: that the model may call, `llm.tool_calls` times in all.
            run_tool: gives the result of a call.
            newest: what the answers came to so far; a conversation that is cut begins with it.

        Raises:
            NoUsableAnswer: all answers were sent back, or the prompt was refused.
            CallFailed: no answer came.
            CannotAfford: the budget does not allow the call, or the run's limit of time ended it.
        """
        most = self.settings.max_tokens
        request = first = Request(
            system=system,
            messages=(Message(role="user", text=prompt),),
            answer_schema=schema,
            tools=tools if self.settings.tool_calls else (),
            max_tokens=min(most, (_MOST_TOKENS | self.settings.role_max_tokens).get(self.name, most)),
            effort=self.settings.effort,
            seed=self.settings.seed,
            deadline=self.ledger.deadline,
        )
        usage, sent_back, replies, called = Usage(), 0, 0, 0
        last = limited = ""
        while sent_back <= SENT_BACK and replies <= feedback:
            try:
                answer = self._answer(request, attempt)
            except (CallFailed, CannotAfford) as failure:
                failure.usage = _sum(usage, failure.usage)
                raise
            usage = _sum(usage, answer.usage)
            if answer.response.calls and request.tools and answer.response.stop != "length":
                results = []
                for call in answer.response.calls:
                    called += 1
                    left = self.settings.tool_calls - called
                    text = run_tool(call) if left >= 0 else _NO_CALLS_LEFT
                    results.append(
                        ToolResult(id=call.id, text=f"{text}\n({left} calls left)" if left > 0 else text)
                    )
                if called > self.settings.tool_calls:
                    sent_back, last = sent_back + 1, "it calls tools and does not answer"
                turn = partial(Request.with_results, response=answer.response, results=tuple(results))
                request = _fitting(turn, request, first, newest)
                continue
            try:
                return take(_whole(answer.response), sent_back > 0), usage
            except Objection as objection:
                last = reply = str(objection)
                if isinstance(objection, Feedback):
                    replies += 1
                else:
                    sent_back += 1
                    reply = render("shared/again.md.j2", role=self.name, objection=last)
                turn = partial(Request.then, answer=answer.response.text, objection=reply)
                request = _fitting(turn, request, first, newest)
                limited = ""
                if answer.response.stop == "length":
                    limited = answer.limited
                    request = request.model_copy(update={"max_tokens": most})
                    last += _CUT
        if limited:
            ended = CannotAfford(limited)
            ended.usage = usage
            raise ended
        answers = f"{self.model.spec}: {sent_back + replies} answers did not do"
        raise NoUsableAnswer(f"{answers}: {last}", usage=usage)

    def _answer(self, request: Request, attempt: str) -> Answer:
        """Ask once, unless the time is over."""
        if request.deadline is not None and time.monotonic() >= request.deadline:
            raise CannotAfford(f"the run's limit of time leaves none for a call to {self.model.spec}")
        try:
            return self.ledger.ask(self.model, request, role=self.name, attempt=attempt)
        except OutOfTime as failure:
            ended = CannotAfford(str(failure))
            ended.usage = failure.usage
            raise ended from failure


def _begun(first: Request, newest: str) -> Request:
    """The first request, with what the answers came to."""
    asked = first.messages[0]
    text = f"{asked.text}\n\n{newest}" if newest else asked.text
    return first.model_copy(update={"messages": (asked.model_copy(update={"text": text}),)})


def _fitting(
    add: Callable[[Request], Request], request: Request, first: Request, newest: Callable[[], str]
) -> Request:
    """The request with a turn more. If it is too long: without signed reasoning, or with that turn alone."""
    longer = add(request)
    if longer.characters > MOST_CHARACTERS:
        longer = longer.unsigned()
    return longer if longer.characters <= MOST_CHARACTERS else add(_begun(first, newest()))


def parsed(kind: type[Structured], response: Response) -> Structured:
    """The answer as a model.

    Raises:
        Objection: nothing in the answer fits; the message says what does not.
    """
    answer = read(kind, response.objects)
    if isinstance(answer, str):
        raise Objection(answer)
    return answer


def _whole(response: Response) -> Response:
    if response.stop == "length":
        raise Objection(
            "your answer was cut off at the limit of tokens, which includes your reasoning: answer again, "
            "shorter, and begin with the answer itself"
        )
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


def sum_of(usages: Iterable[Usage]) -> Usage:
    """The usage of several calls."""
    return reduce(_sum, usages, Usage())
