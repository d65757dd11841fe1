"""The contract of a language model behind an endpoint."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cached_property
from typing import Any, Literal, Protocol

from agentforge.registry import Registry
from agentforge.schema import FrozenModel, content_hash

Effort = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]
"""How much a reasoning model is to think; an endpoint refuses what its model does not have."""

StopReason = Literal["end", "length", "refusal", "other"]
"""`end`: the model was done. `length`: cut by `max_tokens` or the context window. `refusal`: it, or a
filter of the vendor's, declined."""

OnText = Callable[[str], None]
"""Called with each piece of the answer as it arrives."""


class Message(FrozenModel):
    """One turn of the conversation."""

    role: Literal["user", "assistant"]
    text: str


class Request(FrozenModel):
    """What a model is asked."""

    system: tuple[str, ...] = ()
    """Parts of the system prompt, the ones that change least first: each end is a place up to which the
    vendor may cache."""
    messages: tuple[Message, ...]
    """Turns, oldest first; the last one is the user's."""
    answer_schema: dict[str, Any] | None = None
    """JSON schema of the answer; None for free text."""
    max_tokens: int = 16384
    """Of the answer, reasoning included."""
    effort: Effort | None = None
    """None leaves it to the model."""
    seed: int | None = None
    """Where the endpoint has seeds."""

    @cached_property
    def hash(self) -> str:
        """Hash of all that the answer depends on."""
        return content_hash(self.model_dump(mode="json"), length=32)

    @property
    def characters(self) -> int:
        """Length of all text, the schema's included."""
        schema = len(json.dumps(self.answer_schema)) if self.answer_schema else 0
        return sum(map(len, self.system)) + sum(len(m.text) for m in self.messages) + schema

    def then(self, answer: str, objection: str) -> Request:
        """The request that sends `answer` back with an objection."""
        # an empty turn is refused by the vendors
        said = Message(role="assistant", text=answer.strip() or "(no answer)")
        return self.model_copy(
            update={"messages": (*self.messages, said, Message(role="user", text=objection))}
        )


class Tokens(FrozenModel):
    """What a call used, as the endpoint counts it."""

    input: int = 0
    """All tokens of the prompt, cached ones included."""
    cached: int = 0
    """Of `input`, read from the vendor's cache."""
    cache_written: int = 0
    """Of `input`, written to the vendor's cache."""
    output: int = 0
    """All tokens of the answer, reasoning included."""
    reasoning: int = 0
    """Of `output`, thought and not said; 0 where the endpoint does not tell."""
    known: bool = True
    """False where the endpoint gave no account and the numbers are estimates."""


class Response(FrozenModel):
    """What a model answered."""

    text: str
    model: str
    """As the endpoint names it."""
    stop: StopReason = "end"
    tokens: Tokens = Tokens()

    @cached_property
    def parsed(self) -> dict[str, Any] | None:
        """The JSON object in the text, found inside fences and prose too; None where there is none."""
        from .structured import find_object

        return find_object(self.text)


class LanguageModel(Protocol):
    """A model behind an endpoint. Thread-safe; retries are the vendor's SDK's own."""

    spec: str
    """What a user types, for example `anthropic:claude-sonnet-4-6`."""
    model: str
    """The vendor's name of it, which prices are kept by."""
    endpoint: str
    """Host that limits calls, for messages and the concurrency limit."""

    def complete(self, request: Request, on_text: OnText | None = None) -> Response:
        """Ask once and wait for the whole answer.

        Raises:
            UsageError: key, model or request are refused: asking again does not help.
            MachineError: there is no route to the endpoint, or its quota is used up.
            CallFailed: this call failed; another may succeed.
        """
        ...


class CallFailed(Exception):
    """A call that brought no usable answer (rate limit, time-out, cut stream, refusal): data for the loop.

    Args:
        what: for a person.
        tokens: what it used all the same; None for nothing that is known.
    """

    def __init__(self, what: str, tokens: Tokens | None = None) -> None:
        super().__init__(what)
        self.tokens = tokens or Tokens()


class CannotAfford(Exception):
    """A call that could pass the run's budget and was not made."""


providers: Registry[LanguageModel] = Registry(
    "providers",
    {
        "anthropic": "agentforge.llm.anthropic_messages:AnthropicMessages",
        "openai": "agentforge.llm.openai_responses:open_openai",
        "replay": "agentforge.llm.cassette:Replay",
    },
)
"""Factories `(target, options) -> LanguageModel`, `target` being what follows the colon."""
