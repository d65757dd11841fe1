"""Turn the SDKs' exceptions into one sentence that says what to do."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from agentforge.schema import OutageError, ProviderError, UsageError

from .._base import CallFailed, PromptRefused
from .keys import hidden

RATE_LIMITED = (429, 529)
_NO_TOOLS = (400, 404, 422, 500, 501)
"""Statuses with which endpoints refuse tools: 404 at a router without such a model, 500 at llama.cpp."""
_TOOLS = re.compile(
    r"\btools?\b|tool_(?:choice|use|call)|call a function|function.call"
    r"|reasoning_content|thought_signature|must be passed back"
)
"""What endpoints say that have no tools, cannot read the call that their model wrote (Groq, Ollama), or want
the model's thoughts back with the results (Gemini, DeepSeek)."""
_THOUGHTS = (
    "encrypted content",
    "encrypted_content",
    "signature` in `thinking",
    "bound to a different conversation",
)
"""What OpenAI and Anthropic say of models without thoughts, and of thoughts that they do not take back."""
_NO_QUOTA = (
    "insufficient_quota",
    "billing_hard_limit_reached",
    "credit balance is too low",
    "billing_error",
    "api usage limits",
    "enforced_spend_limit_reached",
    "credit_balance_exhausted",
    "spend_limit_exceeded",
    "organization_usage_limit_exceeded",
)
"""What the vendors say if no call is paid for until somebody acts, or the month ends."""
_DECLINED = (
    "invalid_prompt",
    "usage polic",
    "content_filter",
    "content_policy",
    "content management policy",
    "data_inspection_failed",
    "content exists risk",
    "bio_policy",
    "misalignment_policy",
)
"""What filters say that decline a prompt (OpenAI, Azure, Alibaba, DeepSeek); another prompt may pass."""
_TOO_LONG = (
    "context_length_exceeded",
    "exceed_context_size",
    "prompt is too long",
    "context length",
    "context limit",
    "context size",
    "context window",
)


_BUSY = ("overloaded", "rate_limit", "rate limit", "too many requests", "429")
"""What an error event says before anything was computed."""


class TooBusy(CallFailed):
    """The endpoint had no room for the call. If it sent nothing before it said so, nothing is billed."""


class ArgumentRefused(Exception):
    """The endpoint does not know an argument; the request works without it, or with another name.

    Args:
        failure: what it means if the request did not have the argument.
    """

    def __init__(self, argument: str, said: str, failure: Exception | None = None) -> None:
        super().__init__(said)
        self.argument = argument
        self.failure = failure


@dataclass(frozen=True)
class Endpoint:
    """The endpoint's name for messages, and the SDK whose exceptions are read."""

    sdk: Any
    """Module of the SDK. `openai` and `anthropic` name their exceptions alike."""
    name: str
    """Host, or the vendor's name."""
    model: str
    key_variable: str
    key: str | None

    @contextmanager
    def translated(self) -> Iterator[None]:
        """Replace the SDK's exceptions by this package's errors, `CallFailed` or `ArgumentRefused`."""
        import httpx2

        try:
            yield
        except self.sdk.APIStatusError as error:
            if error.status_code < 400:  # an error event in a stream that began well
                raise self.in_stream(_said(error)) from error
            raise self._by_status(error.status_code, _said(error)) from error
        except (self.sdk.APITimeoutError, httpx2.TimeoutException) as error:
            raise CallFailed(
                f"{self.name} did not answer in time: raise llm.timeout_s if it is slow"
            ) from error
        except (self.sdk.APIConnectionError, httpx2.ConnectError) as error:
            raise self._unreachable(error) from error
        except httpx2.HTTPError as error:
            raise CallFailed(f"{self.name} broke the connection off: {self.clean(error)}") from error
        except (self.sdk.APIError, self.sdk.APIResponseValidationError) as error:
            raise self.in_stream(_said(error)) from error
        except (UnicodeDecodeError, ValueError) as error:  # the SDK's own decoding failed
            raise CallFailed(f"{self.name} sent something that is no answer: {self.clean(error)}") from error
        except (AttributeError, TypeError, LookupError, AssertionError) as error:  # an event without a part
            raise CallFailed(f"{self.name} sent a malformed event: {self.clean(error)}") from error

    def _by_status(self, status: int, said: str) -> Exception:
        failure, text = self._failure(status, said), said.lower()
        if _too_long(text):
            return failure
        if status in (400, 422) and _about_schema(text):
            return ArgumentRefused("schema", self.clean(said), failure)
        if status in (400, 422) and (argument := _refused_argument(text)):
            return ArgumentRefused(argument, self.clean(said), failure)
        if status in _NO_TOOLS and _about_tools(text):
            return ArgumentRefused("tools", self.clean(said), failure)
        return failure

    def _failure(self, status: int, said: str) -> Exception:
        text, who = said.lower(), f"{self.name} ({status})"
        if status == 402 or any(sign in text for sign in _NO_QUOTA):
            return OutageError(
                f"{who}: the quota is used up: add credit, raise the spend limit, or use another key or --llm"
                f" ({self.clean(said)})"
            )
        if _too_long(text):
            return PromptRefused(
                f"{who}: the prompt and the longest answer exceed the context of {self.model}: lower "
                f"llm.max_tokens, or serve it with a longer context ({self.clean(said)})"
            )
        if status in (400, 403) and any(sign in text for sign in _DECLINED):
            return PromptRefused(f"{who}: {self.model} declined to answer ({self.clean(said)})")
        match status:
            case 401 | 403:
                return ProviderError(
                    f"{who} refuses the key, or refuses it {self.model}: check {self.key_variable}"
                    f" ({self.clean(said)})"
                )
            case 404:
                return ProviderError(
                    f"{who} has no model {self.model!r}, or the URL is wrong: check --llm"
                    f" ({self.clean(said)})"
                )
            case 408 | 409 | 429 | 529:
                return CallFailed(
                    f"{who}: too many calls or too busy, also after the SDK's own retries"
                    f" ({self.clean(said)})"
                )
        if status >= 500:
            return CallFailed(f"{who}: the endpoint fails ({self.clean(said)})")
        hint = ": lower llm.max_tokens" if re.search(r"max_(?:completion_|output_)?tokens", text) else ""
        return UsageError(f"{who} refuses the request to {self.model}: {self.clean(said)}{hint}")

    def _unreachable(self, error: BaseException) -> Exception:
        cause = error.__cause__ or error
        if "refused" in str(cause).lower() or type(cause).__name__ == "ConnectError":
            return OutageError(
                f"there is no route to {self.name} ({self.clean(cause)}): start the server, "
                "check the URL in --llm, or the network and its proxy"
            )
        return CallFailed(f"{self.name} broke the connection off ({self.clean(cause)})")

    def in_stream(self, said: str) -> Exception:
        """What an error event means, which has a message with codes and no HTTP status."""
        text = said.lower()
        if any(sign in text for sign in _NO_QUOTA):
            return self._failure(402, said)
        if _too_long(text) or any(sign in text for sign in _DECLINED):
            return self._failure(400, said)
        kind = TooBusy if any(sign in text for sign in _BUSY) else CallFailed
        return kind(f"{self.name}: {self.clean(said)}")

    def clean(self, what: object) -> str:
        """One line without the key, at most 300 characters."""
        line = " ".join(hidden(str(what), self.key).split())
        return line[:300].rstrip(".")


def _said(error: Any) -> str:
    """The endpoint's message, with its codes if there are any."""
    inner = _error_of(getattr(error, "body", None))
    details = inner.get("details")
    code = details.get("error_code") if isinstance(details, dict) else None
    message = inner.get("message") or inner.get("detail")
    parts = (inner.get("type"), inner.get("code"), code, message, _forwarded(inner.get("metadata")))
    if any(parts):
        return ": ".join(dict.fromkeys(str(p) for p in parts if p))
    return str(getattr(error, "message", error))


def _error_of(body: Any) -> dict[str, Any]:
    """The error in an answer's JSON, which may be the whole of it; empty without one."""
    inner = body.get("error", body) if isinstance(body, dict) else None
    return inner if isinstance(inner, dict) else {}


def _forwarded(metadata: Any) -> str:
    """What the provider behind a router said (OpenRouter): its message, or its whole answer."""
    raw = metadata.get("raw") if isinstance(metadata, dict) else None
    if not isinstance(raw, str):
        return ""
    with suppress(ValueError, RecursionError):
        message = _error_of(json.loads(raw)).get("message")
        return message if isinstance(message, str) else raw
    return raw


def _refused_argument(text: str) -> str:
    if "stream_options" in text:
        return "stream_options"
    if any(sign in text for sign in _THOUGHTS):
        return "reasoning"
    unknown = (
        "unsupported",
        "not supported",
        "unknown",
        "unrecognized",
        "unexpected",
        "not permitted",
        "extra",
    )
    # a limit that is too high names max_tokens too
    named = "max_completion_tokens" in text or (
        "max_tokens" in text and any(word in text for word in unknown)
    )
    return "max_tokens" if named and "too large" not in text else ""


def _too_long(text: str) -> bool:
    return any(sign in text for sign in _TOO_LONG)


def _about_tools(text: str) -> bool:
    return _TOOLS.search(text) is not None


def _about_schema(text: str) -> bool:
    signs = ("schema", "response_format", "output_config", "structured output", "text.format", "grammar")
    return any(sign in text for sign in signs)
