"""OpenAI's Responses API, by the official SDK."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from agentforge.config import LLMSettings
from agentforge.schema import content_hash

from .._base import CallFailed, Message, Request, Response, StopReason, Tokens, ToolCall
from ..spec import ModelSpec
from .endpoint import EndpointModel, Heard, counted
from .failures import Endpoint
from .keys import require_key
from .packages import OPENAI_MINIMUM, require
from .reasoning import kept, put_back

KEY = "OPENAI_API_KEY"


class OpenAIResponses(EndpointModel):
    """A model at OpenAI, or at the URL in `OPENAI_BASE_URL`."""

    def __init__(self, where: ModelSpec, settings: LLMSettings) -> None:
        key = require_key("OpenAI", KEY)
        name = os.environ.get("OPENAI_BASE_URL", "").strip() or "OpenAI"  # the SDK follows it
        endpoint = Endpoint(require("openai", OPENAI_MINIMUM), name, where.model, KEY, key)
        super().__init__(f"openai:{where.model}", endpoint, settings)
        self._client = endpoint.sdk.AsyncOpenAI(**self.client_options())

    async def stream(self, request: Request, heard: Heard) -> Response:
        final: Any = None
        refused = False
        async with await self._client.responses.create(stream=True, **self._arguments(request)) as stream:
            async for event in heard.events(stream):
                match event.type:
                    case "response.output_text.delta":
                        heard.add(event.delta)
                    case (
                        "response.reasoning_text.delta"
                        | "response.reasoning_summary_text.delta"
                        | "response.function_call_arguments.delta"
                    ):
                        heard.hide(event.delta)
                    case "response.refusal.done":
                        refused = True
                    case "response.completed" | "response.incomplete" | "response.failed":
                        final = event.response
                    case "error":
                        raise self._at.in_stream(_said(event))
        if final is None:
            raise self.cut(heard)
        text = final.output_text
        tokens = counted(request, heard.billed or text, lambda: _tokens(final.usage))
        if final.status == "failed":
            failure = self._at.in_stream(_said(final.error) if final.error else "the response failed")
            if isinstance(failure, CallFailed):
                failure.tokens = tokens
            raise failure
        calls = tuple(
            ToolCall(id=item.call_id, name=item.name, arguments=item.arguments)
            for item in final.output
            if item.type == "function_call"
        )
        return Response(
            text=text,
            model=final.model,
            stop="refusal" if refused else _stop(final),
            tokens=tokens,
            calls=calls,
            reasoning=kept(request, _thoughts(final.output)) if calls else "",
        )

    def _arguments(self, request: Request) -> dict[str, Any]:
        arguments: dict[str, Any] = {
            "model": self.model,
            "input": [item for n in range(len(request.messages)) for item in self._items(request, n)],
            "max_output_tokens": request.max_tokens,
            "store": False,
        }
        if request.system:
            arguments["instructions"] = "\n\n".join(request.system)
            # requests with the same prefix go to the machine that has it in its cache
            arguments["prompt_cache_key"] = content_hash(request.system[0])
        if request.effort is not None:
            arguments["reasoning"] = {"effort": request.effort}
        if request.tools:
            arguments["tools"] = [
                {"type": "function", "strict": False, **tool.model_dump()} for tool in request.tools
            ]
            if not self.refuses("reasoning"):  # nothing is stored there, so it comes here to go back
                arguments["include"] = ["reasoning.encrypted_content"]
        if request.answer_schema is not None:
            form = {"type": "json_schema", "name": "answer", "strict": True, "schema": request.answer_schema}
            arguments["text"] = {"format": form}
        return arguments

    def _items(self, request: Request, turn: int) -> list[dict[str, Any]]:
        """A turn in the API's words: each thought, call and result is an item of its own."""
        items = _items(request.messages[turn])
        return items if self.refuses("reasoning") else put_back(request, turn, items)


def _said(error: Any) -> str:
    """The code and the message of an error event."""
    return ": ".join(filter(None, (error.code, error.message)))


def _items(message: Message) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = [
        {"type": "function_call_output", "call_id": r.id, "output": r.text} for r in message.results
    ]
    if message.text or not (message.results or message.calls):
        items.append({"role": message.role, "content": message.text})
    for call in message.calls:
        body = {"call_id": call.id, "name": call.name, "arguments": call.arguments}
        items.append({"type": "function_call", **body})
    return items


def _thoughts(output: Sequence[Any]) -> list[dict[str, Any] | None]:
    """The items of an answer as `kept` takes them: all texts are one item, and none if they are empty."""
    found: list[dict[str, Any] | None] = []
    said = False
    for item in output:
        if item.type == "reasoning" and item.encrypted_content:
            found.append(item.model_dump(mode="json", exclude_none=True, exclude={"status"}))
        elif item.type == "function_call":
            found.append(None)
        elif item.type == "message" and not said:
            said = any(part.type == "output_text" and part.text.strip() for part in item.content)
            found += [None] * said
    return found


def _stop(response: Any) -> StopReason:
    if response.status == "completed":
        return "end"
    reason = response.incomplete_details.reason if response.incomplete_details else None
    if reason == "max_output_tokens":
        return "length"
    return "refusal" if reason == "content_filter" else "other"


def _tokens(usage: Any) -> Tokens:
    ins, outs = usage.input_tokens_details, usage.output_tokens_details
    return Tokens(
        input=usage.input_tokens,
        cached=getattr(ins, "cached_tokens", None) or 0,
        cache_written=getattr(ins, "cache_write_tokens", None) or 0,
        output=usage.output_tokens,
        reasoning=getattr(outs, "reasoning_tokens", None) or 0,
    )
