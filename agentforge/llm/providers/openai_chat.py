"""Chat Completions for servers compatible with OpenAI's (vLLM, SGLang, Ollama, ...), by the official SDK."""

from __future__ import annotations

from typing import Any

from agentforge.config import LLMSettings

from .._base import Message, Request, Response, StopReason, Tokens, ToolCall
from ..spec import ModelSpec
from .endpoint import EndpointModel, Heard, counted, joined
from .failures import Endpoint
from .keys import ENDPOINT_KEY, find_key
from .packages import OPENAI_MINIMUM, require

_STOPS: dict[str | None, StopReason] = {
    "stop": "end",
    "tool_calls": "end",
    "length": "length",
    "content_filter": "refusal",
}


class OpenAIChat(EndpointModel):
    """A model at a URL that the user names."""

    def __init__(self, where: ModelSpec, settings: LLMSettings) -> None:
        sdk = require("openai", OPENAI_MINIMUM)
        endpoint = Endpoint(sdk, where.url or "", where.model, ENDPOINT_KEY, find_key(ENDPOINT_KEY))
        super().__init__(f"openai:{where.model}@{where.url}", endpoint, settings)
        self._client = sdk.AsyncOpenAI(base_url=where.url, **self.client_options())
        # the SDK takes them from variables (OPENAI_CUSTOM_HEADERS, ...), which are meant for OpenAI
        self._client._custom_headers, self._client.organization, self._client.project = {}, None, None

    async def stream(self, request: Request, heard: Heard) -> Response:
        model, reason, usage, refused = self.model, None, None, False
        calls, thoughts = _Calls(), list[str]()
        async with await self._client.chat.completions.create(
            stream=True, **self._arguments(request)
        ) as stream:
            async for chunk in heard.events(stream):
                model, usage = chunk.model or model, chunk.usage or usage
                for choice in chunk.choices or ():
                    reason = choice.finish_reason or reason
                    if choice.delta is None and "content_filter_results" in (choice.model_extra or ()):
                        continue  # Azure's filter reports beside the answer
                    refused = refused or bool(choice.delta.refusal)
                    if choice.delta.content:
                        heard.add(choice.delta.content)
                    thoughts.append(getattr(choice.delta, "reasoning_content", None) or "")
                    heard.hide(thoughts[-1] or getattr(choice.delta, "reasoning", None) or "")
                    for part in choice.delta.tool_calls or ():
                        heard.hide(calls.add(part))
        if reason is None:
            raise self.cut(heard)
        return Response(
            text=heard.text,
            model=model,
            stop="refusal" if refused else _STOPS.get(reason, "other"),
            tokens=counted(request, heard.billed, lambda: _tokens(usage)),
            calls=calls.all(),
            reasoning=joined(thoughts) if calls.all() else "",
        )

    def _arguments(self, request: Request) -> dict[str, Any]:
        system = [{"role": "system", "content": "\n\n".join(request.system)}] if request.system else []
        thinks = any(m.reasoning for m in request.messages)
        arguments: dict[str, Any] = {
            "model": self.model,
            "messages": [*system, *(turn for m in request.messages for turn in _turns(m, thinks))],
            "max_completion_tokens" if self.refuses("max_tokens") else "max_tokens": request.max_tokens,
        }
        if not self.refuses("stream_options"):
            arguments["stream_options"] = {"include_usage": True}
        if request.effort is not None:
            arguments["reasoning_effort"] = request.effort
        if request.seed is not None:
            arguments["seed"] = request.seed
        if request.tools:
            arguments["tools"] = [{"type": "function", "function": t.model_dump()} for t in request.tools]
        if request.answer_schema is not None:
            form = {"name": "answer", "strict": True, "schema": request.answer_schema}
            arguments["response_format"] = {"type": "json_schema", "json_schema": form}
        return arguments


def _turns(message: Message, thinks: bool) -> list[dict[str, Any]]:
    """A turn in the API's words: each result is a message of its own.

    DeepSeek and Kimi refuse a conversation with calls whose answers come back without their reasoning.
    """
    turns: list[dict[str, Any]] = [
        {"role": "tool", "tool_call_id": r.id, "content": r.text} for r in message.results
    ]
    if message.calls:
        calls = [
            {"id": c.id, "type": "function", "function": {"name": c.name, "arguments": c.arguments}}
            for c in message.calls
        ]
        turns.append({"role": message.role, "content": message.text or None, "tool_calls": calls})
    elif message.text or not turns:
        turns.append({"role": message.role, "content": message.text})
    if thinks and message.role == "assistant":
        turns[-1]["reasoning_content"] = message.reasoning
    return turns


class _Calls:
    """Tool calls of a stream, put together from their pieces."""

    def __init__(self) -> None:
        self._parts: list[dict[str, str]] = []
        self._places: dict[int | None, int] = {}

    def add(self, part: Any) -> str:
        """Add a piece; returns its text. A new id begins a call, though some give every call the index 0."""
        place = self._places.get(part.index)
        begins = place is None or (part.id and part.id != self._parts[place]["id"])
        if begins:
            place = self._places[part.index] = len(self._parts)
            self._parts.append({"id": part.id or f"call_{place}", "name": "", "arguments": ""})
        assert place is not None
        name, arguments = (part.function.name, part.function.arguments) if part.function else ("", "")
        self._parts[place]["name"] += name or ""
        self._parts[place]["arguments"] += arguments or ""
        return (name or "") + (arguments or "")

    def all(self) -> tuple[ToolCall, ...]:
        """The calls in their order."""
        return tuple(ToolCall(**{key: joined([text]) for key, text in part.items()}) for part in self._parts)


def _tokens(usage: Any) -> Tokens:
    """xAI and Gemini count reasoning beside the completion, in the total alone."""
    ins, outs = usage.prompt_tokens_details, usage.completion_tokens_details
    total = getattr(usage, "total_tokens", None) or 0
    return Tokens(
        input=usage.prompt_tokens,
        cached=getattr(ins, "cached_tokens", None) or 0,
        cache_written=getattr(ins, "cache_write_tokens", None) or 0,
        output=max(usage.completion_tokens, total - usage.prompt_tokens),
        reasoning=getattr(outs, "reasoning_tokens", None) or 0,
    )
