"""OpenAI's Responses API, by the official SDK."""

from __future__ import annotations

from typing import Any

from agentforge.config import LLMSettings
from agentforge.schema import content_hash

from ._base import CallFailed, LanguageModel, Request, Response, StopReason, Tokens
from ._endpoint import EndpointModel, Heard, estimated
from ._failures import Endpoint
from ._keys import require_key
from ._packages import require
from ._spec import Target, parse_target

MINIMUM = "3.52"
"""First version that was tried."""

KEY = "OPENAI_API_KEY"


def open_openai(target: str, settings: LLMSettings) -> LanguageModel:
    """A model at OpenAI by the Responses API; at a URL of the user's by Chat Completions, which all
    compatible servers speak."""
    where = parse_target(target)
    if where.url is None:
        return OpenAIResponses(where, settings)
    from .openai_chat import OpenAIChat

    return OpenAIChat(where, settings)


class OpenAIResponses(EndpointModel):
    """A model at OpenAI, or where `OPENAI_BASE_URL` points."""

    def __init__(self, where: Target, settings: LLMSettings) -> None:
        sdk = require("openai", MINIMUM)
        endpoint = Endpoint(sdk, "OpenAI", where.model, KEY, require_key("OpenAI", KEY))
        super().__init__(f"openai:{where.model}", endpoint, settings)
        self._client = sdk.AsyncOpenAI(**self._client_options())

    async def _stream(self, request: Request, heard: Heard) -> Response:
        final: Any = None
        refused = False
        async with await self._client.responses.create(stream=True, **self._arguments(request)) as stream:
            async for event in heard.events(stream):
                match event.type:
                    case "response.output_text.delta":
                        heard.add(event.delta)
                    case "response.refusal.done":
                        refused = True
                    case "response.completed" | "response.incomplete":
                        final = event.response
                    case "response.failed":
                        said = event.response.error
                        raise CallFailed(
                            f"{self.endpoint}: {said.message if said else 'the response failed'}"
                        )
                    case "error":
                        raise CallFailed(f"{self.endpoint}: {event.message}")
        if final is None:
            raise self._cut()
        text = final.output_text
        return Response(
            text=text,
            model=final.model,
            stop="refusal" if refused else _stop(final),
            tokens=_tokens(final.usage) if final.usage else estimated(request, text),
        )

    def _arguments(self, request: Request) -> dict[str, Any]:
        arguments: dict[str, Any] = {
            "model": self.model,
            "input": [{"role": m.role, "content": m.text} for m in request.messages],
            "max_output_tokens": request.max_tokens,
            "store": False,
        }
        if request.system:
            arguments["instructions"] = "\n\n".join(request.system)
            # requests that share a prefix go to the machine that has it in its cache
            arguments["prompt_cache_key"] = content_hash(request.system[0])
        if request.effort is not None:
            arguments["reasoning"] = {"effort": request.effort}
        if request.answer_schema is not None:
            form = {"type": "json_schema", "name": "answer", "strict": True, "schema": request.answer_schema}
            arguments["text"] = {"format": form}
        return arguments


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
