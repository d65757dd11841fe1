"""Common parts of the vendors' models: concurrency limit, schema fallback, deadline."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable
from contextlib import AbstractContextManager
from contextvars import ContextVar
from typing import Any, TypeVar

from agentforge.config import LLMSettings
from agentforge.schema import UsageError

from .._base import CallFailed, Message, OutOfTime, PromptRefused, Request, Response, Tokens
from ..prices import Price
from ..structured import instruction, without_thoughts
from .background import wait
from .concurrency import limit_for
from .failures import RATE_LIMITED, ArgumentRefused, Endpoint, TooBusy

T = TypeVar("T")

TOKEN_CHARACTERS = 3
"""Characters per token, estimated low: estimates of tokens are on the safe side for code and English."""

_UNPROMPTED = 10_000
"""Most tokens that an endpoint may count beyond one for each byte of a text, or ten times its limit."""
_SHOWN = 100
"""Characters of an answer that is no stream, in the message."""


class EndpointModel:
    """Base class of models behind an HTTP endpoint: a subclass writes `stream`, which makes one call.

    This class limits concurrency, enforces the deadline, falls back to a schema in words, and turns the SDK's
    exceptions into sentences. If they are not named like OpenAI's and Anthropic's, override `translated` too.
    """

    price: Price | None = None
    """Dollars per million tokens, if the provider knows them; a user's price table goes first."""

    def __init__(self, spec: str, endpoint: Endpoint, settings: LLMSettings) -> None:
        self.spec = spec
        self.model = endpoint.model
        self.endpoint = endpoint.name
        self._at = endpoint
        self._settings = settings
        self._limit = limit_for(endpoint.name, settings.concurrency)
        self._refused: set[str] = set()

    def complete(self, request: Request) -> Response:
        """See `LanguageModel.complete`."""
        with self._limit.slot():
            response = wait(self._understood(request))
            self._limit.succeeded()
        if response.stop == "refusal":
            raise PromptRefused(f"{self.endpoint}: {self.model} declined to answer", response.tokens)
        answer = response.model_copy(update={"text": without_thoughts(response.text)})
        if _ignores(request.answer_schema, answer):
            self._refused.add("schema")  # the next prompts contain it
        return answer

    def refuses(self, argument: str) -> bool:
        """True if the endpoint refused an argument of an earlier request."""
        return argument in self._refused

    async def _understood(self, request: Request) -> Response:
        """Ask, without the arguments that the endpoint refuses; a refused schema goes into the prompt."""
        dropped: set[str] = set()  # by this call; another one may learn the same meanwhile
        while True:
            asked = with_schema_text(request) if self.refuses("schema") else request
            asked = without_tools(asked) if self.refuses("tools") else asked
            try:
                return await self._ask(asked)
            except ArgumentRefused as refusal:
                argument = refusal.argument
                sent = {"schema": asked.answer_schema is not None, "tools": bool(asked.tools)}
                if argument in dropped or not sent.get(argument, True):
                    raise refusal.failure or UsageError(
                        f"{self.endpoint} refuses the request: {refusal}"
                    ) from refusal
                dropped.add(argument)
                self._refused.add(argument)

    async def _ask(self, request: Request) -> Response:
        """Make one call.

        Raises:
            ArgumentRefused: the endpoint does not know a part of the request.
        """
        heard = Heard()
        _current.set(heard)
        seconds = self._settings.deadline_s
        left = math.inf if request.deadline is None else request.deadline - time.monotonic()
        try:
            async with asyncio.timeout(min(seconds, left)):  # the SDK's timeout applies to each read
                with self.translated():
                    return await self.stream(request, heard)
        except CallFailed as failure:
            unbilled = isinstance(failure, TooBusy | PromptRefused) and not heard.billed
            if heard.began and not unbilled and (failure.tokens == Tokens() or not failure.tokens.known):
                failure.tokens = at_most(request, heard.billed)
            raise
        except TimeoutError as error:
            tokens = at_most(request, heard.billed) if heard.began else None
            if left < seconds:
                did = "was still answering" if heard.billed else "had not begun to answer"
                what = f"{self.endpoint} {did} when the run's limit of time ended the call"
                raise OutOfTime(what, tokens) from error
            raise CallFailed(self._late(heard), tokens) from error

    def _late(self, heard: Heard) -> str:
        """What the endpoint did until the deadline."""
        seconds = f"after {self._settings.deadline_s:g} s"
        if heard.rate_limited:
            return f"{self.endpoint}: too many calls or too busy, also {seconds} (llm.deadline_s)"
        did = "was still answering" if heard.billed else "had not begun to answer"
        return f"{self.endpoint} {did} {seconds}: raise llm.deadline_s if it is slow"

    async def stream(self, request: Request, heard: Heard) -> Response:
        """Ask once.

        Args:
            heard: give it each piece of the answer, `heard.add(text)`, and billed text beside it, such as
                reasoning: `heard.hide(text)`.

        Raises:
            ArgumentRefused: the endpoint does not know an argument, such as `schema`; the request comes again
                without it.
            Exception: whatever `translated` reads.
        """
        raise NotImplementedError

    def translated(self) -> AbstractContextManager[None]:
        """Replace the SDK's exceptions by this package's errors, `CallFailed` or `ArgumentRefused`."""
        return self._at.translated()

    def client_options(self) -> dict[str, Any]:
        """Arguments for the clients of both SDKs."""
        client = self._at.sdk.DefaultAsyncHttpxClient(event_hooks={"response": [self._watch]})
        return {
            "api_key": self._at.key or "none",  # most local servers need no key, but the SDKs require one
            "timeout": self._settings.timeout_s,
            "max_retries": self._settings.retries,
            "http_client": client,
        }

    async def _watch(self, response: Any) -> None:
        """Inspect each HTTP response, including those that the SDK retries."""
        heard, limited = _current.get(None), response.status_code in RATE_LIMITED
        if limited:
            self._limit.rate_limited()
            if _pause_s(response) >= self._settings.deadline_s:  # Anthropic's SDK would wait for hours
                response.headers["x-should-retry"] = "false"
        if heard is not None:
            heard.rate_limited = limited
        kind = response.headers.get("content-type", "").partition(";")[0].strip()
        if response.status_code == 200 and kind != "text/event-stream" and heard is not None:
            await response.aread()
            start = " ".join(response.text[: 4 * _SHOWN].split())[:_SHOWN]
            heard.instead = f"{kind or 'an answer without a content type'}, {start!r}"

    def cut(self, heard: Heard) -> CallFailed:
        """The failure to raise if the stream ends without an end of the answer."""
        if heard.billed:
            return CallFailed(f"{self.endpoint} ended the stream in the middle of the answer")
        if heard.instead:
            said = self._at.clean(heard.instead)
            return CallFailed(f"{self.endpoint} sent no stream but {said}: check the URL in --llm")
        return CallFailed(f"{self.endpoint} ended the stream before the answer")


class Heard:
    """The answer received so far."""

    def __init__(self) -> None:
        self.began = False
        self.rate_limited = False
        """The newest response said that there are too many calls."""
        self.instead = ""
        """What came with status 200 if it was no stream of events: its type and its first characters."""
        self._pieces: list[str] = []
        self._hidden: list[str] = []

    @property
    def text(self) -> str:
        """The text so far."""
        return joined(self._pieces)

    @property
    def billed(self) -> str:
        """The text so far, with reasoning and calls."""
        return self.text + joined(self._hidden)

    def add(self, piece: str) -> None:
        """Add a piece of the answer.

        Raises:
            TypeError: it is no text.
        """
        self._pieces.append(_text(piece))

    def hide(self, piece: str) -> None:
        """Count a piece that is billed and no part of the answer: reasoning, or a part of a tool call.

        Raises:
            TypeError: it is no text.
        """
        self._hidden.append(_text(piece))

    async def events(self, stream: AsyncIterable[T]) -> AsyncIterator[T]:
        """The stream's events."""
        self.began = True  # the endpoint accepted the request, whatever follows
        async for event in stream:
            yield event


def _pause_s(response: Any) -> float:
    """Seconds that a response asks to wait; 0 if it names none, or a date."""
    try:
        return float(response.headers.get("retry-after", ""))
    except ValueError:
        return 0.0


def joined(pieces: Iterable[str]) -> str:
    """Pieces of a stream as one text, also if a piece ends in the middle of a character."""
    return "".join(pieces).encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _text(piece: object) -> str:
    if not isinstance(piece, str):
        raise TypeError(f"a piece of the answer is no text but {type(piece).__name__}")
    return piece


def with_schema_text(request: Request) -> Request:
    """The request with the schema in the prompt, for an endpoint that enforces none."""
    if request.answer_schema is None:
        return request
    last = request.messages[-1]
    text = f"{last.text}\n\n{instruction(request.answer_schema)}"
    messages = (*request.messages[:-1], last.model_copy(update={"text": text}))
    return request.model_copy(update={"messages": messages, "answer_schema": None})


def _ignores(schema: dict[str, Any] | None, answer: Response) -> bool:
    """True if a whole answer does not follow the schema: some endpoints take one and do not enforce it."""
    if schema is None or answer.stop != "end" or answer.calls or not answer.text.strip():
        return False
    needed = set(schema.get("required", ()))
    return not any(needed <= found.keys() for found in answer.objects)


def without_tools(request: Request) -> Request:
    """The request without tools, for an endpoint that has none; earlier calls and results become text."""
    messages = tuple(Message(role=m.role, text=_in_words(m)) for m in request.messages)
    return request.model_copy(update={"messages": messages, "tools": ()})


def _in_words(message: Message) -> str:
    calls = (f"(called {call.name} {call.arguments})" for call in message.calls)
    results = (f"The tool answered:\n{result.text}" for result in message.results)
    return "\n\n".join(filter(None, (message.text, *calls, *results)))


_current: ContextVar[Heard | None] = ContextVar("heard", default=None)
"""The call under way, for the hook that sees its HTTP response."""


def counted(request: Request, text: str, usage: Callable[[], Tokens]) -> Tokens:
    """The tokens that the endpoint reports, or an estimate if it reports none or impossible ones."""
    try:
        tokens = usage()
    except (AttributeError, TypeError, ValueError):
        return estimated(request, text)
    most_in = 4 * request.characters + _UNPROMPTED  # at most four bytes a character
    most_out = max(4 * len(text), 10 * request.max_tokens) + _UNPROMPTED
    possible = (
        0 < tokens.input <= most_in
        and bool(text) <= tokens.output <= most_out
        and min(tokens.cached, tokens.cache_written, tokens.reasoning) >= 0
        and tokens.cached + tokens.cache_written <= tokens.input
    )
    return tokens if possible else estimated(request, text)


def at_most(request: Request, text: str) -> Tokens:
    """The most that an answer without its end can cost: reasoning that is not sent is billed too."""
    tokens = estimated(request, text)
    return tokens.model_copy(update={"output": max(tokens.output, request.max_tokens)})


def estimated(request: Request, text: str) -> Tokens:
    """Estimated tokens, for an endpoint that reports none."""
    return Tokens(
        input=-(-request.characters // TOKEN_CHARACTERS),
        output=-(-len(text) // TOKEN_CHARACTERS),
        known=False,
    )
