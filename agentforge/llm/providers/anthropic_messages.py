"""Anthropic's Messages API, by the official SDK."""

from __future__ import annotations

import json
import os
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from agentforge.config import LLMSettings

from .._base import Message, Request, Response, StopReason, Tokens, ToolCall
from ..spec import parse_target
from .endpoint import EndpointModel, Heard, counted, joined
from .failures import Endpoint
from .keys import ENDPOINT_KEY, find_key, require_key
from .packages import require
from .reasoning import kept, put_back

MINIMUM = "2.11"
"""Oldest tested version: it has `output_config` and the current stop reasons."""

_STOPS: dict[str | None, StopReason] = {
    "end_turn": "end",
    "tool_use": "end",
    "stop_sequence": "end",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "refusal",
}
_BREAKPOINTS = 4
"""Most cache breakpoints that the API accepts; one is that of the last turn."""
_CACHED = {"type": "ephemeral"}


class AnthropicMessages(EndpointModel):
    """A model at Anthropic, or at a URL that speaks its API.

    Args:
        target: `MODEL` or `MODEL@URL`.
    """

    def __init__(self, target: str, settings: LLMSettings) -> None:
        where = parse_target(target)
        variable = ENDPOINT_KEY if where.url else "ANTHROPIC_API_KEY"
        key = find_key(variable) if where.url else require_key("Anthropic", variable)
        sdk = require("anthropic", MINIMUM)  # after the key, which is checked at once
        name = where.url or os.environ.get("ANTHROPIC_BASE_URL", "").strip() or "Anthropic"
        endpoint = Endpoint(sdk, name, where.model, variable, key)
        super().__init__(f"anthropic:{target}", endpoint, settings)
        self._client = sdk.AsyncAnthropic(base_url=where.url, **self.client_options())
        if where.url:  # the SDK takes them from ANTHROPIC_CUSTOM_HEADERS, which is meant for Anthropic
            self._client._custom_headers = {}

    async def stream(self, request: Request, heard: Heard) -> Response:
        events = list[Any]()
        # the SDK's `messages.stream` raises an exception for arguments of a call that are no JSON
        async with await self._client.messages.create(stream=True, **self._arguments(request)) as stream:
            async for event in heard.events(stream):
                events.append(event)
                if event.type == "content_block_delta":
                    _hear(event.delta, heard)
        if not any(event.type == "message_stop" for event in events):
            raise self.cut(heard)
        message, arguments = _put_together(events)
        calls = tuple(
            ToolCall(id=block.id, name=block.name, arguments=joined(arguments[n]) or json.dumps(block.input))
            for n, block in enumerate(message.content)
            if block.type == "tool_use"
        )
        return Response(
            text=heard.text,
            model=message.model,
            stop=_STOPS.get(message.stop_reason, "other"),
            tokens=counted(request, heard.billed, lambda: _tokens(message.usage)),
            calls=calls,
            reasoning=kept(request, _thoughts(message.content)) if calls else "",
        )

    def _arguments(self, request: Request) -> dict[str, Any]:
        turns = enumerate(request.messages)
        arguments: dict[str, Any] = {
            "model": self.model,
            "max_tokens": request.max_tokens,
            "messages": [{"role": m.role, "content": self._content(request, n)} for n, m in turns],
        }
        if request.system:
            parts: list[dict[str, Any]] = [{"type": "text", "text": part} for part in request.system]
            for part in parts[-(_BREAKPOINTS - 1) :]:
                part["cache_control"] = _CACHED
            arguments["system"] = parts
        if request.tools:
            arguments["tools"] = [
                {"name": t.name, "description": t.description, "input_schema": t.parameters}
                for t in request.tools
            ]
        output: dict[str, Any] = {}
        if request.answer_schema is not None:
            output["format"] = {"type": "json_schema", "schema": request.answer_schema}
        if request.effort is not None:
            output["effort"] = request.effort
        if output:
            arguments["output_config"] = output
        return arguments

    def _content(self, request: Request, turn: int) -> str | list[dict[str, Any]]:
        """A turn in the API's words: text, or blocks. With tools, the next request repeats all until here, so
        the last turn ends what may be cached."""
        message = request.messages[turn]
        last = bool(request.tools) and turn == len(request.messages) - 1
        if not (message.calls or message.results or last):
            return message.text
        blocks = _blocks(message)
        blocks = blocks if self.refuses("reasoning") else put_back(request, turn, blocks)
        return [*blocks[:-1], {**blocks[-1], "cache_control": _CACHED}] if last else blocks


def _hear(delta: Any, heard: Heard) -> None:
    match delta.type:
        case "text_delta":
            heard.add(delta.text)
        case "thinking_delta":
            heard.hide(delta.thinking)
        case "input_json_delta":
            heard.hide(delta.partial_json)


def _put_together(events: Iterable[Any]) -> tuple[Any, defaultdict[int, list[str]]]:
    """The message of a stream, and the pieces of the arguments of its calls by the place of their block."""
    message: Any = None
    arguments = defaultdict[int, list[str]](list)
    for event in events:
        match event.type:
            case "message_start":
                message = event.message
            case "content_block_start":
                message.content.append(event.content_block)
            case "content_block_delta":
                block, delta = message.content[event.index], event.delta
                match delta.type:
                    case "text_delta":
                        block.text += delta.text
                    case "thinking_delta":
                        block.thinking += delta.thinking
                    case "signature_delta":
                        block.signature = delta.signature
                    case "input_json_delta":
                        arguments[event.index].append(delta.partial_json)
            case "message_delta":
                message.stop_reason = event.delta.stop_reason
                for name, count in event.usage or ():
                    if count is not None:  # it is the total so far
                        setattr(message.usage, name, count)
    return message, arguments


def _blocks(message: Message) -> list[dict[str, Any]]:
    blocks: list[dict[str, Any]] = [
        {"type": "tool_result", "tool_use_id": r.id, "content": r.text} for r in message.results
    ]
    if message.text:
        blocks.append({"type": "text", "text": message.text})
    for call in message.calls:
        blocks.append(
            {"type": "tool_use", "id": call.id, "name": call.name, "input": _object(call.arguments)}
        )
    return blocks


def _thoughts(content: Sequence[Any]) -> list[dict[str, Any] | None]:
    """The blocks of an answer as `kept` takes them: all texts are one block, and none if they are empty."""
    found: list[dict[str, Any] | None] = []
    said = False
    for block in content:
        if block.type == "thinking":
            found.append({"type": block.type, "thinking": block.thinking, "signature": block.signature})
        elif block.type == "redacted_thinking":
            found.append({"type": block.type, "data": block.data})
        elif block.type == "tool_use" or (block.type == "text" and block.text.strip() and not said):
            found.append(None)
            said = said or block.type == "text"
    return found


def _object(arguments: str) -> dict[str, Any]:
    """The arguments as the API takes them: an object, empty if they are none."""
    try:
        value = json.loads(arguments, strict=False)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _tokens(usage: Any) -> Tokens:
    """Anthropic counts cached tokens separately from `input_tokens`; here they are included."""
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
