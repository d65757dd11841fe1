"""A local HTTP server that speaks the wire formats of both vendors, and fails on demand.

POST /v1/messages (Anthropic Messages), /v1/responses (OpenAI Responses) and /v1/chat/completions (Chat
Completions), all streaming, as the vendors document them, so that the real SDKs run against it.
"""

from __future__ import annotations

import json
import socket
import struct
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

PIECE = 24
"""Characters in each piece of a stream."""


@dataclass(frozen=True)
class Reply:
    """What the server says to one request."""

    text: str = ""
    fault: str = ""
    """A status (`"401"`), or: `reset`, `cut`, `stall`, `no-schema`, `no-tools`, `detail`, `garbage`,
    `error-event`, `error-first`, `filter-report` (Chat), `bytes`, `failed` and `error` (Responses), a key of
    `NO_STREAMS`, a value of `MALFORMED`, or `usage-` with a key of `ACCOUNTS`."""
    stop: str = "end"
    """`end`, `length` or `refusal`."""
    headers: dict[str, str] = field(default_factory=dict)
    cached: int = 0
    reasoning: int = 0
    beside: int = 0
    """Tokens of reasoning that Chat Completions counts in the total alone, as xAI and Gemini do."""
    thought: str = ""
    """Reasoning before the answer; its signature or encrypted text is this text backwards."""
    message: str = ""
    """Of the error body or event."""
    code: str = ""
    """Of the error body or event; with Anthropic's API in its `details`."""
    calls: tuple[tuple[str, str], ...] = ()
    """Tool calls: name, and arguments as JSON text; their ids are `call_0`, `call_1`, ..."""
    raw: str = ""
    """What a router forwards in the error body's metadata."""
    usage: bool = True
    """False leaves out the account, as some compatible servers do."""


Event = tuple[str, dict[str, Any] | str]
Script = Callable[[dict[str, Any]], Reply]


@dataclass
class Seen:
    """A request as it arrived."""

    path: str
    body: dict[str, Any]
    headers: dict[str, str]

    @property
    def prompt(self) -> str:
        """All text of the prompt."""
        return json.dumps(self.body, ensure_ascii=False)


def tokens_of(text: str) -> int:
    """The server's count: four characters a token."""
    return -(-len(text) // 4)


class LLMServer:
    """Runs in a thread while it is entered. Replies come from `replies` first, then from `script`."""

    def __init__(self, script: Script | None = None) -> None:
        self.replies: deque[Reply] = deque()
        self.script = script
        self.seen: list[Seen] = []
        self._billed: list[tuple[int, int]] = []
        self.stall_s = 60.0
        self.most_at_once = 0
        self.delay_s = 0.0
        self._at_once = 0
        self._lock = threading.Lock()
        self._over = threading.Event()
        owner = self

        class Handler(_Handler):
            server_state = owner

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._http.daemon_threads = True
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True)

    @property
    def root(self) -> str:
        return f"http://127.0.0.1:{self._http.server_address[1]}"

    @property
    def url(self) -> str:
        """Base URL for OpenAI's SDK."""
        return f"{self.root}/v1"

    @property
    def billed(self) -> list[tuple[int, int]]:
        """Tokens in and out of each answer that was given in full, once those under way have ended: a client
        has read an answer before the server's thread comes to write it down."""
        until = time.monotonic() + 5.0
        while self._at_once and time.monotonic() < until:
            time.sleep(0.005)
        return self._billed

    def then(self, *replies: Reply | str) -> Self:
        self.replies.extend(Reply(r) if isinstance(r, str) else r for r in replies)
        return self

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()

    def answer(self, seen: Seen) -> Reply:
        with self._lock:
            self.seen.append(seen)
            if self.replies:
                return self.replies.popleft()
        if self.script is None:
            return Reply(
                fault="500", message="the test's script is over", headers={"x-should-retry": "false"}
            )
        return self.script(seen.body)

    def wait(self, seconds: float) -> None:
        self._over.wait(seconds)

    def enter(self, step: int) -> None:
        with self._lock:
            self._at_once += step
            self.most_at_once = max(self.most_at_once, self._at_once)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_state: LLMServer

    def log_message(self, *_: Any) -> None:
        pass

    def do_POST(self) -> None:
        state = self.server_state
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        reply = state.answer(Seen(self.path, body, {k.lower(): v for k, v in self.headers.items()}))
        state.enter(1)
        try:
            time.sleep(state.delay_s)
            self._reply(body, reply)
        except (BrokenPipeError, ConnectionResetError):
            pass
        finally:
            state.enter(-1)

    def _reply(self, body: dict[str, Any], reply: Reply) -> None:
        wire = WIRES.get(self.path)
        if wire is None:
            return self._error(404, _error_body(self.path, "not_found_error", f"no route {self.path}"), {})
        if reply.fault.isdigit():
            status = int(reply.fault)
            kind = KINDS.get(status, "api_error")
            text = reply.message or f"injected {status}"
            said = _error_body(self.path, kind, text, reply.code)
            if reply.raw:
                said["error"]["metadata"] = {"raw": reply.raw, "provider_name": "somebody"}
            return self._error(status, said, reply.headers)
        if reply.fault == "detail":
            return self._error(404, {"detail": reply.message}, {})
        if reply.fault == "no-schema" and any(
            k in body for k in ("response_format", "output_config", "text")
        ):
            text = f"{wire.schema_field}: json_schema is not supported by this model"
            return self._error(400, _error_body(self.path, "invalid_request_error", text), {})
        if reply.fault == "no-tools" and "tools" in body:
            text = f"{body['model']} does not support tools"
            return self._error(400, _error_body(self.path, "invalid_request_error", text), {})
        if reply.fault == "reset":
            # RST instead of FIN
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.close_connection = True
            return self.connection.close()
        if reply.fault in NO_STREAMS:
            kind, text = NO_STREAMS[reply.fault]
            return self._send(200, text.encode(), {"content-type": kind})
        return self._stream(wire, body, reply)

    def _error(self, status: int, body: dict[str, Any], headers: dict[str, str]) -> None:
        self._send(status, json.dumps(body).encode(), {"content-type": "application/json", **headers})

    def _send(self, status: int, data: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _stream(self, wire: type[Wire], body: dict[str, Any], reply: Reply) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream; charset=utf-8")
        self.send_header("connection", "close")
        self.close_connection = True
        self.end_headers()
        events = _malformed(list(wire(body, reply).events()), reply.fault)
        for number, (event, data) in enumerate(events):
            half = number >= len(events) // 2
            if reply.fault == "cut" and half:
                return
            if reply.fault == "stall" and half:
                self.server_state.wait(self.server_state.stall_s)
                return
            if reply.fault == "garbage" and half:
                self.wfile.write(f"event: {event}\ndata: {{not json\n\n".encode())
                return
            if (reply.fault == "error-event" and half) or reply.fault == "error-first":
                error = _error_body(self.path, "overloaded_error", reply.message or "Overloaded", reply.code)
                self.wfile.write(f"event: error\ndata: {json.dumps(error)}\n\n".encode())
                return
            head = f"event: {event}\n" if event else ""
            text = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False)
            line = f"{head}data: {text}\n\n".encode()
            if reply.fault == "bytes":
                line = line.replace("¿".encode(), b"\xff\xfe")
            self.wfile.write(line)
            self.wfile.flush()
        self.server_state._billed.append((wire(body, reply).tokens_in, wire(body, reply).tokens_out))


NO_STREAMS = {
    "json": ("application/json", '{"id": "c1", "choices": [{"message": {"content": "something"}}]}'),
    "json-error": ("application/json", '{"error": {"message": "the model is still loading"}}'),
    "html": ("text/html; charset=utf-8", "<html>\n<title>Sign in to the proxy</title>\n</html>"),
    "empty": ("text/event-stream", ""),
}
"""Answers with status 200 that are no stream."""

ACCOUNTS: dict[str, Any] = {"null": None, "huge": 10**12, "negative": -7, "words": "many"}
"""Impossible counts of tokens."""

MALFORMED = {
    "chat": ("delta-null", "no-delta", "content-list", "choices-object", "data-text"),
    "messages": ("no-start", "no-block", "block-null", "data-text"),
    "responses": ("content-list", "data-text"),
}
"""Events without a part or with another type, by API."""


def _malformed(events: list[Event], fault: str) -> list[Event]:
    """The events with one fault in the middle of the answer, or throughout their counts."""
    if fault.startswith("usage-"):
        return [(name, _counted(data, ACCOUNTS[fault.removeprefix("usage-")])) for name, data in events]
    if fault == "no-start":
        return events[1:]
    if fault == "no-block":
        return [e for e in events if e[0] != "content_block_start"]
    middle = len(events) // 2
    name, data = events[middle]
    if not isinstance(data, dict):
        return events
    data = json.loads(json.dumps(data))
    match fault:
        case "delta-null":
            data["choices"][0]["delta"] = None
        case "no-delta":
            data["choices"][0]["message"] = data["choices"][0].pop("delta")
        case "content-list" if "choices" in data:
            data["choices"][0]["delta"]["content"] = [{"type": "text", "text": "a part"}]
        case "content-list":
            data["delta"] = ["a part"]
        case "choices-object":
            data["choices"] = {"0": data["choices"][0]}
        case "block-null":
            name, data = (
                "content_block_start",
                {"type": "content_block_start", "index": 1, "content_block": None},
            )
        case "data-text":
            return [*events[:middle], (name, '"a text"'), *events[middle + 1 :]]
    return [*events[:middle], (name, data), *events[middle + 1 :]]


def _counted(data: Any, count: Any) -> Any:
    if isinstance(data, dict):
        counts = {k: count for k, v in data.items() if k.endswith("_tokens") and isinstance(v, int)}
        return {**{k: _counted(v, count) for k, v in data.items()}, **counts}
    return [_counted(v, count) for v in data] if isinstance(data, list) else data


KINDS = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    408: "timeout_error",
    429: "rate_limit_error",
    500: "api_error",
    529: "overloaded_error",
}


def _error_body(path: str, kind: str, message: str, code: str = "") -> dict[str, Any]:
    if path.endswith("/messages"):
        details = {"details": {"error_code": code}} if code else {}
        return {"type": "error", "error": {"type": kind, "message": message, **details}, "request_id": "r1"}
    return {"error": {"message": message, "type": kind, "param": None, "code": code or kind}}


class Wire:
    """One answer in one vendor's events."""

    schema_field = ""

    def __init__(self, body: dict[str, Any], reply: Reply) -> None:
        self.body, self.reply = body, reply
        self.tokens_in = tokens_of(json.dumps(body))
        calls = "".join(name + arguments for name, arguments in reply.calls)
        self.tokens_out = tokens_of(reply.text + calls) + reply.reasoning

    def pieces(self, text: str | None = None) -> list[str]:
        text = self.reply.text if text is None else text
        return [text[i : i + PIECE] for i in range(0, len(text), PIECE)]

    def events(self) -> Iterator[Event]:
        raise NotImplementedError


class AnthropicWire(Wire):
    schema_field = "output_config.format"

    def events(self) -> Iterator[Event]:
        reply = self.reply
        usage = {
            "input_tokens": self.tokens_in - reply.cached,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": reply.cached,
            "output_tokens": 1,
        }
        message = {
            "id": "msg_1", "type": "message", "role": "assistant", "content": [], "model": self.body["model"],
            "stop_reason": None, "stop_sequence": None, "usage": usage,
        }  # fmt: skip
        yield "message_start", {"type": "message_start", "message": message}
        at = 0
        if reply.thought:
            block = {"type": "thinking", "thinking": "", "signature": ""}
            yield "content_block_start", {"type": "content_block_start", "index": 0, "content_block": block}
            for piece in self.pieces(reply.thought):
                delta = {"type": "thinking_delta", "thinking": piece}
                yield "content_block_delta", {"type": "content_block_delta", "index": 0, "delta": delta}
            delta = {"type": "signature_delta", "signature": reply.thought[::-1]}
            yield "content_block_delta", {"type": "content_block_delta", "index": 0, "delta": delta}
            yield "content_block_stop", {"type": "content_block_stop", "index": 0}
            hidden = {"type": "redacted_thinking", "data": "aGlkZGVu"}
            yield "content_block_start", {"type": "content_block_start", "index": 1, "content_block": hidden}
            yield "content_block_stop", {"type": "content_block_stop", "index": 1}
            at = 2
        block = {"type": "text", "text": ""}
        yield "content_block_start", {"type": "content_block_start", "index": at, "content_block": block}
        yield "ping", {"type": "ping"}
        for piece in self.pieces():
            delta = {"type": "text_delta", "text": piece}
            yield "content_block_delta", {"type": "content_block_delta", "index": at, "delta": delta}
        yield "content_block_stop", {"type": "content_block_stop", "index": at}
        for number, (name, arguments) in enumerate(reply.calls, at + 1):
            tool = {"type": "tool_use", "id": f"call_{number - at - 1}", "name": name, "input": {}}
            start = {"type": "content_block_start", "index": number, "content_block": tool}
            yield "content_block_start", start
            for piece in self.pieces(arguments):
                delta = {"type": "input_json_delta", "partial_json": piece}
                yield "content_block_delta", {"type": "content_block_delta", "index": number, "delta": delta}
            yield "content_block_stop", {"type": "content_block_stop", "index": number}
        stop = {"end": "end_turn", "length": "max_tokens", "refusal": "refusal"}[reply.stop]
        stop = "tool_use" if reply.calls else stop
        final = {
            "output_tokens": self.tokens_out,
            "output_tokens_details": {"thinking_tokens": reply.reasoning},
        }
        delta = {"stop_reason": stop, "stop_sequence": None}
        yield "message_delta", {"type": "message_delta", "delta": delta, "usage": final}
        yield "message_stop", {"type": "message_stop"}


class ResponsesWire(Wire):
    schema_field = "text.format"

    def _response(self, status: str, text: str | None) -> dict[str, Any]:
        reply = self.reply
        output: list[dict[str, Any]] = []
        if text is not None:
            part: dict[str, Any] = {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
            if reply.stop == "refusal":
                part = {"type": "refusal", "refusal": "I cannot help with that."}
            if reply.thought:
                secret = reply.thought[::-1] if "include" in self.body else None
                thought = {"id": "rs_1", "type": "reasoning", "summary": [], "encrypted_content": secret}
                output.append({**thought, "status": None})
            output += [
                {"id": "msg_1", "type": "message", "role": "assistant", "status": status, "content": [part]}
            ]
            output += [
                {"id": f"fc_{n}", "type": "function_call", "call_id": f"call_{n}", "name": name,
                 "arguments": arguments, "status": status}
                for n, (name, arguments) in enumerate(reply.calls)
            ]  # fmt: skip
        usage = None
        if text is not None and reply.usage:
            usage = {
                "input_tokens": self.tokens_in,
                "input_tokens_details": {"cached_tokens": reply.cached, "cache_write_tokens": 0},
                "output_tokens": self.tokens_out,
                "output_tokens_details": {"reasoning_tokens": reply.reasoning},
                "total_tokens": self.tokens_in + self.tokens_out,
            }
        incomplete = {"reason": "max_output_tokens"} if status == "incomplete" else None
        code, message = reply.code or "server_error", reply.message or "injected failure"
        error = {"code": code, "message": message} if status == "failed" else None
        return {
            "id": "resp_1", "object": "response", "created_at": 1, "status": status,
            "error": error, "incomplete_details": incomplete, "instructions": None,
            "model": self.body["model"], "output": output, "parallel_tool_calls": True,
            "tool_choice": "auto", "tools": [], "usage": usage,
            "metadata": {}, "temperature": 1.0, "top_p": 1.0,
        }  # fmt: skip

    def events(self) -> Iterator[Event]:
        number = iter(range(10**9))

        def event(kind: str, **data: Any) -> Event:
            return kind, {"type": kind, "sequence_number": next(number), **data}

        yield event("response.created", response=self._response("in_progress", None))
        if self.reply.fault == "error":
            yield event("error", code=self.reply.code, message=self.reply.message, param=None)
            return
        where = {"item_id": "msg_1", "output_index": 0, "content_index": 0}
        if self.reply.stop == "refusal":
            yield event("response.refusal.delta", delta="I cannot", **where)
            yield event("response.refusal.done", refusal="I cannot help with that.", **where)
        else:
            for piece in self.pieces():
                yield event("response.output_text.delta", delta=piece, logprobs=[], **where)
            yield event("response.output_text.done", text=self.reply.text, logprobs=[], **where)
        for n, (name, arguments) in enumerate(self.reply.calls):
            item = {"id": f"fc_{n}", "type": "function_call", "call_id": f"call_{n}", "name": name}
            begun = {**item, "arguments": "", "status": "in_progress"}
            yield event("response.output_item.added", output_index=n + 1, item=begun)
            of = {"item_id": f"fc_{n}", "output_index": n + 1}
            for piece in self.pieces(arguments):
                yield event("response.function_call_arguments.delta", delta=piece, **of)
            yield event("response.function_call_arguments.done", arguments=arguments, name=name, **of)
            done = {**item, "arguments": arguments, "status": "completed"}
            yield event("response.output_item.done", output_index=n + 1, item=done)
        status = "incomplete" if self.reply.stop == "length" else "completed"
        status = "failed" if self.reply.fault == "failed" else status
        yield event(f"response.{status}", response=self._response(status, self.reply.text))


class ChatWire(Wire):
    schema_field = "response_format"

    def events(self) -> Iterator[Event]:
        reply = self.reply

        def chunk(delta: dict[str, Any], reason: str | None = None) -> Event:
            choice = {"index": 0, "delta": delta, "finish_reason": reason, "logprobs": None}
            return "", {**base, "choices": [choice], "usage": None}

        base = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": self.body["model"]}
        yield chunk({"role": "assistant", "content": ""})
        if reply.fault == "filter-report":
            report = {"index": 0, "finish_reason": None, "content_filter_results": {}}
            yield "", {**base, "choices": [report], "usage": None}
        if reply.stop == "refusal":
            yield chunk({"refusal": "I cannot help with that."})
        for piece in self.pieces(reply.thought):
            yield chunk({"reasoning_content": piece})
        for piece in self.pieces():
            yield chunk({"content": piece})
        for n, (name, arguments) in enumerate(reply.calls):
            head = {"index": n, "id": f"call_{n}", "type": "function"}
            yield chunk({"tool_calls": [{**head, "function": {"name": name, "arguments": ""}}]})
            for piece in self.pieces(arguments):
                yield chunk({"tool_calls": [{"index": n, "function": {"arguments": piece}}]})
        reason = "tool_calls" if reply.calls else "stop"
        yield chunk({}, {"end": reason, "length": "length", "refusal": "stop"}[reply.stop])
        if reply.usage:
            usage = {
                "prompt_tokens": self.tokens_in,
                "completion_tokens": self.tokens_out,
                "total_tokens": self.tokens_in + self.tokens_out + reply.beside,
                "prompt_tokens_details": {"cached_tokens": reply.cached},
                "completion_tokens_details": {"reasoning_tokens": reply.reasoning},
            }
            yield "", {**base, "choices": [], "usage": usage}
        yield "", "[DONE]"


WIRES: dict[str, type[Wire]] = {
    "/v1/messages": AnthropicWire,
    "/v1/responses": ResponsesWire,
    "/v1/chat/completions": ChatWire,
}
