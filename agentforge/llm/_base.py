"""The Protocol of a language model behind an endpoint."""

from __future__ import annotations

import json
from functools import cached_property
from typing import Any, Literal, Protocol

from pydantic import Field

from agentforge.registry import Registry
from agentforge.schema import FrozenModel, Usage, UsageError, content_hash

Effort = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]
"""Reasoning effort. An endpoint refuses values that its model does not support."""

StopReason = Literal["end", "length", "refusal", "other"]
"""`end`: the answer is complete. `length`: cut by `max_tokens` or the context window. `refusal`: the model or
the vendor's filter declined."""


SIGNED = "signed:"
"""Begins reasoning that its vendor signed or encrypted: a conversation may go on without it."""


class ToolSpec(FrozenModel):
    """A function that the model may call before it answers."""

    name: str
    description: str
    parameters: dict[str, Any]
    """JSON schema of its arguments, an object."""


class ToolCall(FrozenModel):
    """A model's call of a tool."""

    id: str
    """The endpoint's name of the call; its result names it too."""
    name: str
    arguments: str
    """JSON as the model wrote it, which may be invalid."""


class ToolResult(FrozenModel):
    """The answer to a tool call."""

    id: str
    """Of the call."""
    text: str


class Message(FrozenModel):
    """One turn of the conversation."""

    role: Literal["user", "assistant"]
    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    """Of an assistant's turn."""
    results: tuple[ToolResult, ...] = ()
    """Of a user's turn: one for each call of the turn before."""
    reasoning: str = ""
    """Of an assistant's turn with calls: what `Response.reasoning` was."""

    @property
    def characters(self) -> int:
        """Length of all text, with reasoning, calls and results."""
        calls = sum(len(call.name) + len(call.arguments) for call in self.calls)
        return len(self.text) + len(self.reasoning) + calls + sum(len(result.text) for result in self.results)


class Request(FrozenModel):
    """A request to a model."""

    system: tuple[str, ...] = ()
    """Parts of the system prompt, the least changing first. The vendor may cache up to the end of each
    part."""
    messages: tuple[Message, ...]
    """Turns, oldest first; the last one is the user's."""
    answer_schema: dict[str, Any] | None = None
    """JSON schema of the answer; None for free text."""
    tools: tuple[ToolSpec, ...] = ()
    """Functions that the model may call; an endpoint without tools gets none."""
    max_tokens: int = 16384
    """Limit on the answer, reasoning included."""
    effort: Effort | None = None
    """None uses the model's default."""
    seed: int | None = None
    """Ignored by endpoints without seeds."""
    deadline: float | None = Field(default=None, exclude=True)
    """When the call ends at the latest, by `time.monotonic`; None has no limit. The answer does not depend on
    it: it is in no hash, journal or cassette."""

    @cached_property
    def hash(self) -> str:
        """Hash of everything that the answer depends on."""
        return content_hash(self.model_dump(mode="json"), length=32)

    @property
    def characters(self) -> int:
        """Length of all text, including the schema."""
        schema = len(json.dumps(self.answer_schema)) if self.answer_schema else 0
        tools = sum(len(tool.model_dump_json()) for tool in self.tools)
        return sum(map(len, self.system)) + sum(m.characters for m in self.messages) + schema + tools

    def then(self, answer: str, objection: str) -> Request:
        """The request that sends `answer` back with an objection."""
        # the vendors refuse an empty turn
        said = Message(role="assistant", text=answer.strip() or "(no answer)")
        return self.model_copy(
            update={"messages": (*self.messages, said, Message(role="user", text=objection))}
        )

    def with_results(self, response: Response, results: tuple[ToolResult, ...]) -> Request:
        """The request that answers the tool calls of `response`."""
        said = Message(
            role="assistant",
            text=response.text.strip(),
            calls=response.calls,
            reasoning=response.reasoning,
        )
        return self.model_copy(
            update={"messages": (*self.messages, said, Message(role="user", results=results))}
        )

    def unsigned(self) -> Request:
        """The request without reasoning that a vendor signed, which is long."""
        messages = tuple(
            message.model_copy(update={"reasoning": ""}) if message.reasoning.startswith(SIGNED) else message
            for message in self.messages
        )
        return self.model_copy(update={"messages": messages})


class Tokens(FrozenModel):
    """Tokens of a call, as the endpoint counts them."""

    input: int = 0
    """All tokens of the prompt, cached ones included."""
    cached: int = 0
    """Of `input`, read from the vendor's cache."""
    cache_written: int = 0
    """Of `input`, written to the vendor's cache."""
    output: int = 0
    """All tokens of the answer, reasoning included."""
    reasoning: int = 0
    """Of `output`, reasoning that is not shown; 0 if the endpoint does not report it."""
    known: bool = True
    """False if the endpoint reported nothing and the numbers are estimates."""


class Response(FrozenModel):
    """A model's answer."""

    text: str
    model: str
    """The endpoint's name of the model."""
    stop: StopReason = "end"
    tokens: Tokens = Tokens()
    calls: tuple[ToolCall, ...] = ()
    """Tools that the model calls; it answers after their results."""
    reasoning: str = ""
    """What the model thought before its calls, if the endpoint wants it back with their results: text, or
    `SIGNED` and what only the vendor reads."""

    @cached_property
    def objects(self) -> tuple[dict[str, Any], ...]:
        """The JSON objects in the text, also inside fences and prose, the last one first."""
        from .structured import find_objects

        return find_objects(self.text)

    @property
    def parsed(self) -> dict[str, Any] | None:
        """The last JSON object in the text; None if there is none."""
        return self.objects[0] if self.objects else None


class LanguageModel(Protocol):
    """A model behind an endpoint. Thread-safe. The vendor's SDK does the retries."""

    spec: str
    """Specification that a user types, for example `anthropic:claude-sonnet-4-6`."""
    model: str
    """The vendor's name, the key of its price."""
    endpoint: str
    """Host, for messages and the concurrency limit."""

    def complete(self, request: Request) -> Response:
        """Make one call and wait for the whole answer.

        Raises:
            UsageError: the request is refused; repeating the call does not help.
            ProviderError: the key, the model or the URL is refused.
            OutageError: the endpoint cannot be reached, or its quota is used up.
            PromptRefused: this prompt gets no answer; another one may.
            CallFailed: this call failed; another one may succeed.
        """
        ...


class CallFailed(Exception):
    """A call without a usable answer (rate limit, timeout, cut stream, refusal). The loop continues.

    Args:
        tokens: of the call; None if unknown.
        usage: of all calls that were made for the answer; the ledger and the roles add it.
    """

    def __init__(self, what: str, tokens: Tokens | None = None, usage: Usage | None = None) -> None:
        super().__init__(what)
        self.tokens = tokens or Tokens()
        self.usage = usage or Usage()


class NoUsableAnswer(CallFailed):
    """The endpoint works, but no answer to this question can be used: to ask again would end alike."""


class PromptRefused(NoUsableAnswer):
    """This prompt gets no answer: it was declined, or is too long."""


class NotRecorded(UsageError):
    """An answer cannot be appended to the cassette; it was paid, and a resumed run asks again.

    Args:
        tokens: of the call.
    """

    def __init__(self, what: str, tokens: Tokens) -> None:
        super().__init__(what)
        self.tokens = tokens


class OutOfTime(CallFailed):
    """The call was ended at the request's deadline; the endpoint is not to blame."""


class CannotAfford(Exception):
    """No further call can be made: it could exceed the run's budget, the run's limit of time ended it, or
    the model refuses one prompt after the other."""

    usage = Usage()
    """Of the calls before it that were made for the same answer."""


providers: Registry[LanguageModel] = Registry(
    "providers",
    {
        "anthropic": "agentforge.llm.providers.anthropic_messages:AnthropicMessages",
        "openai": "agentforge.llm.providers.openai:open_openai",
        "replay": "agentforge.llm.cassette:Replay",
    },
)
"""Factories `(target, settings, **options) -> LanguageModel`.

`target` is the text after the first colon, `settings` are the `LLMSettings`.
"""
