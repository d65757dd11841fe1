"""What the vendors' models share: gate, schema fallback, deadline."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, AsyncIterator
from typing import Any, TypeVar

from agentforge.config import LLMSettings

from ._background import wait
from ._base import CallFailed, Message, OnText, Request, Response, Tokens
from ._failures import RATE_LIMITED, Endpoint, SchemaRefused
from ._gate import gate_for
from .structured import instruction

T = TypeVar("T")

TOKEN_CHARACTERS = 3
"""Characters of a token, at least: estimates with it are on the safe side for code and English."""


class EndpointModel:
    """A model behind an HTTP endpoint; subclasses say how it is asked once."""

    def __init__(self, spec: str, endpoint: Endpoint, settings: LLMSettings) -> None:
        self.spec = spec
        self.model = endpoint.model
        self.endpoint = endpoint.name
        self._at = endpoint
        self._settings = settings
        self._gate = gate_for(endpoint.name, settings.concurrency)
        self._has_schemas = True

    def complete(self, request: Request, on_text: OnText | None = None) -> Response:
        """See `LanguageModel.complete`."""
        with self._gate.turn():
            response = wait(self._with_schema(request, on_text))
            self._gate.succeeded()
        if response.stop == "refusal":
            raise CallFailed(f"{self.endpoint}: {self.model} declined to answer", response.tokens)
        return response

    async def _with_schema(self, request: Request, on_text: OnText | None) -> Response:
        """Let the endpoint enforce the schema; tell the model of it where the endpoint cannot."""
        if request.answer_schema is None or not self._has_schemas:
            return await self._ask(told(request), on_text)
        try:
            return await self._ask(request, on_text)
        except SchemaRefused:
            self._has_schemas = False
            return await self._ask(told(request), on_text)

    async def _ask(self, request: Request, on_text: OnText | None) -> Response:
        """Ask once; schema errors come as `SchemaRefused`."""
        heard = Heard(on_text)
        try:
            async with asyncio.timeout(self._settings.deadline_s):  # the SDK's time-out is for each read
                with self._at.translated():
                    return await self._stream(request, heard)
        except CallFailed as failure:
            if heard.began and failure.tokens == Tokens():  # what was said is billed, and no account came
                failure.tokens = estimated(request, heard.text)
            raise
        except TimeoutError as error:
            raise CallFailed(
                f"{self.endpoint} was still answering after {self._settings.deadline_s:g} s: "
                "raise llm.deadline_s if it is slow",
                estimated(request, heard.text),
            ) from error

    async def _stream(self, request: Request, heard: Heard) -> Response:
        raise NotImplementedError

    def _client_options(self) -> dict[str, Any]:
        """Arguments that both SDKs' clients take."""
        client = self._at.sdk.DefaultAsyncHttpxClient(event_hooks={"response": [self._watch]})
        return {
            "api_key": self._at.key,
            "timeout": self._settings.timeout_s,
            "max_retries": self._settings.retries,
            "http_client": client,
        }

    async def _watch(self, response: Any) -> None:
        """See each HTTP response, those that the SDK retries included."""
        if response.status_code in RATE_LIMITED:
            self._gate.rate_limited()

    def _cut(self) -> CallFailed:
        return CallFailed(f"{self.endpoint} ended the stream in the middle of the answer")


class Heard:
    """What came of one answer so far.

    Args:
        on_text: told of each piece, in the thread of the event loop.
    """

    def __init__(self, on_text: OnText | None) -> None:
        self.began = False
        self._on_text = on_text
        self._pieces: list[str] = []

    @property
    def text(self) -> str:
        """The answer so far."""
        return "".join(self._pieces)

    def add(self, piece: str) -> None:
        """A piece of the answer arrived."""
        self._pieces.append(piece)
        if self._on_text is not None:
            self._on_text(piece)

    async def events(self, stream: AsyncIterable[T]) -> AsyncIterator[T]:
        """The stream's events."""
        self.began = True  # the endpoint took the request, whatever comes of it
        async for event in stream:
            yield event


def told(request: Request) -> Request:
    """The request for an endpoint that enforces no schema: the model is told of it."""
    if request.answer_schema is None:
        return request
    last = request.messages[-1]
    text = f"{last.text}\n\n{instruction(request.answer_schema)}"
    messages = (*request.messages[:-1], Message(role="user", text=text))
    return request.model_copy(update={"messages": messages, "answer_schema": None})


def estimated(request: Request, text: str) -> Tokens:
    """Tokens where the endpoint counts none."""
    return Tokens(
        input=-(-request.characters // TOKEN_CHARACTERS),
        output=-(-len(text) // TOKEN_CHARACTERS),
        known=False,
    )
