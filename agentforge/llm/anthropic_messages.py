"""Anthropic's Messages API, by the official SDK."""

from __future__ import annotations

from typing import Any

from agentforge.config import LLMSettings

from ._base import Request, Response, StopReason, Tokens
from ._endpoint import EndpointModel, Heard
from ._failures import Endpoint
from ._keys import ENDPOINT_KEY, find_key, require_key
from ._packages import require
from ._spec import parse_target

MINIMUM = "2.11"
"""First version that was tried: it has `output_config` and the types of today's stop reasons."""

_STOPS: dict[str | None, StopReason] = {
    "end_turn": "end",
    "stop_sequence": "end",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "refusal",
}
_BREAKPOINTS = 4
"""The API takes at most this many places up to which it caches."""


class AnthropicMessages(EndpointModel):
    """A model at Anthropic, or at a URL that speaks its API.

    Args:
        target: `MODEL` or `MODEL@URL`.
        settings: time-outs, retries, concurrency.
    """

    def __init__(self, target: str, settings: LLMSettings) -> None:
        where = parse_target(target)
        sdk = require("anthropic", MINIMUM)
        variable = ENDPOINT_KEY if where.url else "ANTHROPIC_API_KEY"
        key = (find_key(variable) or "none") if where.url else require_key("Anthropic", variable)
        endpoint = Endpoint(sdk, where.url or "Anthropic", where.model, variable, key)
        super().__init__(f"anthropic:{target}", endpoint, settings)
        self._client = sdk.AsyncAnthropic(base_url=where.url, **self._client_options())

    async def _stream(self, request: Request, heard: Heard) -> Response:
        finished = False
        async with self._client.messages.stream(**self._arguments(request)) as stream:
            async for event in heard.events(stream):
                if event.type == "text":
                    heard.add(event.text)
                finished = finished or event.type == "message_stop"
            if not finished:
                raise self._cut()
            message = await stream.get_final_message()
        return Response(
            text="".join(block.text for block in message.content if block.type == "text"),
            model=message.model,
            stop=_STOPS.get(message.stop_reason, "other"),
            tokens=_tokens(message.usage),
        )

    def _arguments(self, request: Request) -> dict[str, Any]:
        arguments: dict[str, Any] = {
            "model": self.model,
            "max_tokens": request.max_tokens,
            "messages": [{"role": m.role, "content": m.text} for m in request.messages],
        }
        if request.system:
            parts = [{"type": "text", "text": part} for part in request.system]
            for part in parts[-_BREAKPOINTS:]:
                part["cache_control"] = {"type": "ephemeral"}  # type: ignore[assignment]
            arguments["system"] = parts
        output: dict[str, Any] = {}
        if request.answer_schema is not None:
            output["format"] = {"type": "json_schema", "schema": request.answer_schema}
        if request.effort is not None:
            output["effort"] = request.effort
        if output:
            arguments["output_config"] = output
        return arguments


def _tokens(usage: Any) -> Tokens:
    """Anthropic counts cached tokens beside `input_tokens`; here they are part of it."""
    read = usage.cache_read_input_tokens or 0
    written = usage.cache_creation_input_tokens or 0
    details = usage.output_tokens_details
    return Tokens(
        input=usage.input_tokens + read + written,
        cached=read,
        cache_written=written,
        output=usage.output_tokens,
        reasoning=getattr(details, "thinking_tokens", None) or 0,
    )
