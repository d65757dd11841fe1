"""Chat Completions, for servers compatible with OpenAI's (vLLM, SGLang, Ollama, ...), by the official SDK."""

from __future__ import annotations

from typing import Any

from agentforge.config import LLMSettings

from ._base import Request, Response, StopReason, Tokens
from ._endpoint import EndpointModel, Heard, estimated
from ._failures import Endpoint
from ._keys import ENDPOINT_KEY, find_key
from ._packages import require
from ._spec import Target
from .openai_responses import MINIMUM

_STOPS: dict[str | None, StopReason] = {"stop": "end", "length": "length", "content_filter": "refusal"}


class OpenAIChat(EndpointModel):
    """A model at a URL of the user's."""

    def __init__(self, where: Target, settings: LLMSettings) -> None:
        sdk = require("openai", MINIMUM)
        key = find_key(ENDPOINT_KEY) or "none"  # most local servers want none, and the SDK wants one
        endpoint = Endpoint(sdk, where.url or "", where.model, ENDPOINT_KEY, key)
        super().__init__(f"openai:{where.model}@{where.url}", endpoint, settings)
        self._client = sdk.AsyncOpenAI(base_url=where.url, **self._client_options())

    async def _stream(self, request: Request, heard: Heard) -> Response:
        model, reason, usage, refused = self.model, None, None, False
        async with await self._client.chat.completions.create(
            stream=True, **self._arguments(request)
        ) as stream:
            async for chunk in heard.events(stream):
                model, usage = chunk.model or model, chunk.usage or usage
                for choice in chunk.choices or ():
                    reason = choice.finish_reason or reason
                    refused = refused or bool(choice.delta.refusal)
                    if choice.delta.content:
                        heard.add(choice.delta.content)
        if reason is None:
            raise self._cut()
        return Response(
            text=heard.text,
            model=model,
            stop="refusal" if refused else _STOPS.get(reason, "other"),
            tokens=_tokens(usage) if usage else estimated(request, heard.text),
        )

    def _arguments(self, request: Request) -> dict[str, Any]:
        system = [{"role": "system", "content": "\n\n".join(request.system)}] if request.system else []
        arguments: dict[str, Any] = {
            "model": self.model,
            "messages": [*system, *({"role": m.role, "content": m.text} for m in request.messages)],
            "max_tokens": request.max_tokens,
            "stream_options": {"include_usage": True},
        }
        if request.effort is not None:
            arguments["reasoning_effort"] = request.effort
        if request.seed is not None:
            arguments["seed"] = request.seed
        if request.answer_schema is not None:
            form = {"name": "answer", "strict": True, "schema": request.answer_schema}
            arguments["response_format"] = {"type": "json_schema", "json_schema": form}
        return arguments


def _tokens(usage: Any) -> Tokens:
    ins, outs = usage.prompt_tokens_details, usage.completion_tokens_details
    return Tokens(
        input=usage.prompt_tokens,
        cached=getattr(ins, "cached_tokens", None) or 0,
        cache_written=getattr(ins, "cache_write_tokens", None) or 0,
        output=usage.completion_tokens,
        reasoning=getattr(outs, "reasoning_tokens", None) or 0,
    )
