"""What an SDK raises becomes one sentence that says what to do."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from agentforge.schema import MachineError, UsageError

from ._base import CallFailed
from ._keys import hidden

RATE_LIMITED = (429, 529)
_NO_QUOTA = ("insufficient_quota", "billing_hard_limit_reached", "credit balance is too low", "billing_error")
_TOO_LONG = ("context_length_exceeded", "prompt is too long", "maximum context length")


class SchemaRefused(Exception):
    """The endpoint or its model knows no JSON schema; the request can be made without."""


@dataclass(frozen=True)
class Endpoint:
    """Whom messages speak of, and the SDK whose exceptions are read."""

    sdk: Any
    """Module of the SDK: `openai` and `anthropic` name their exceptions alike."""
    name: str
    """Host, or the vendor's name."""
    model: str
    key_variable: str
    key: str | None

    @contextmanager
    def translated(self) -> Iterator[None]:
        """Raise our errors, or `CallFailed` or `SchemaRefused`, for what the SDK raises inside."""
        import httpx2

        try:
            yield
        except self.sdk.APIStatusError as error:
            if error.status_code < 400:  # an error event inside a stream that began well
                raise self._in_stream(error) from error
            raise self._by_status(error.status_code, _said(error)) from error
        except (self.sdk.APITimeoutError, httpx2.TimeoutException) as error:
            raise CallFailed(
                f"{self.name} did not answer in time: raise llm.timeout_s if it is slow"
            ) from error
        except (self.sdk.APIConnectionError, httpx2.ConnectError) as error:
            raise self._unreachable(error) from error
        except httpx2.HTTPError as error:
            raise CallFailed(f"{self.name} broke the connection off: {error}") from error
        except (self.sdk.APIError, self.sdk.APIResponseValidationError) as error:
            raise self._in_stream(error) from error
        except (UnicodeDecodeError, ValueError) as error:  # of the SDK's own decoding
            raise CallFailed(f"{self.name} sent something that is no answer: {self._clean(error)}") from error

    def _by_status(self, status: int, said: str) -> Exception:
        text = said.lower()
        who = f"{self.name} ({status})"
        if status in (400, 422) and _about_schema(text):
            return SchemaRefused(said)
        if status == 402 or any(sign in text for sign in _NO_QUOTA):
            return MachineError(f"{who}: the quota is used up: add credit, or use another key or --llm")
        if any(sign in text for sign in _TOO_LONG):
            return CallFailed(f"{who}: the prompt is too long for {self.model}")
        match status:
            case 401 | 403:
                return UsageError(
                    f"{who} refuses the key, or refuses it {self.model}: check {self.key_variable}"
                    f" ({self._clean(said)})"
                )
            case 404:
                return UsageError(
                    f"{who} has no model {self.model!r}, or the URL is wrong: check --llm"
                    f" ({self._clean(said)})"
                )
            case 408 | 409 | 429 | 529:
                return CallFailed(f"{who}: too many calls or too busy, also after the SDK's own retries")
        if status >= 500:
            return CallFailed(f"{who}: the endpoint fails ({self._clean(said)})")
        return UsageError(f"{who} refuses the request to {self.model}: {self._clean(said)}")

    def _unreachable(self, error: BaseException) -> Exception:
        cause = error.__cause__ or error
        if "refused" in str(cause).lower() or type(cause).__name__ == "ConnectError":
            return MachineError(
                f"there is no route to {self.name} ({self._clean(cause)}): start the server, "
                "check the URL in --llm, or the network and its proxy"
            )
        return CallFailed(f"{self.name} broke the connection off ({self._clean(cause)})")

    def _in_stream(self, error: Any) -> Exception:
        """An error event has a body, and no status that says anything."""
        said = _said(error)
        if any(sign in said.lower() for sign in _NO_QUOTA):
            return self._by_status(402, said)
        return CallFailed(f"{self.name}: {self._clean(said)}")

    def _clean(self, what: object) -> str:
        line = " ".join(hidden(str(what), self.key).split())
        return line[:300].rstrip(".")


def _said(error: Any) -> str:
    """What the endpoint said, with its code where there is one."""
    body = getattr(error, "body", None)
    inner = body.get("error", body) if isinstance(body, dict) else None
    if isinstance(inner, dict):
        parts = (inner.get("type"), inner.get("code"), inner.get("message"))
        return ": ".join(dict.fromkeys(str(p) for p in parts if p))
    return str(getattr(error, "message", error))


def _about_schema(text: str) -> bool:
    signs = ("response_format", "output_config", "json_schema", "structured output", "text.format")
    return any(sign in text for sign in signs)
