"""From what the user types to a model: `anthropic:MODEL`, `openai:MODEL@URL`, `replay:FILE`."""

from __future__ import annotations

import re
from dataclasses import dataclass

from agentforge.config import LLMSettings
from agentforge.schema import UsageError

from ._base import LanguageModel, providers

FORMS = "anthropic:MODEL, openai:MODEL, openai:MODEL@http://HOST:PORT/v1, replay:FILE or playbook"
_OTHER_URL = re.compile(r"@[^@/\s]*(?:://|:\d+(?:/|$))")


@dataclass(frozen=True)
class Target:
    """Model and, where the user named one, base URL."""

    model: str
    url: str | None = None


def is_spec(name: str) -> bool:
    """Whether this names a language model and not a registered agent."""
    return ":" in name


def parse_target(text: str) -> Target:
    """Read `MODEL` or `MODEL@URL`; a model's name may hold an `@` of its own.

    Raises:
        UsageError: no model is named, or its URL is none.
    """
    for scheme in ("@http://", "@https://"):
        model, found, rest = text.partition(scheme)
        if found:
            break
    else:
        model, rest, scheme = text, "", ""
    if not model.strip() or (scheme and not rest.strip("/ ")):
        raise UsageError(f"{text!r} names no model: write {FORMS}")
    if _OTHER_URL.search(model):
        raise UsageError(f"the URL in {text!r} does not begin with http:// or https://: write {FORMS}")
    return Target(model.strip(), f"{scheme[1:]}{rest.strip()}".rstrip("/") if scheme else None)


def open_model(spec: str, settings: LLMSettings | None = None) -> LanguageModel:
    """The model that a specification names; no call is made.

    Raises:
        UsageError: unknown provider, no key, no file.
        MachineError: the provider's package is missing or too old.
    """
    kind, _, target = spec.partition(":")
    if not target:
        raise UsageError(f"{spec!r} names no model: write {FORMS}")
    return providers.create(kind, target, settings or LLMSettings())
