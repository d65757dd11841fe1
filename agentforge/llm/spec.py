"""Parse model specifications: `anthropic:MODEL`, `openai:MODEL@URL`, `replay:FILE`."""

from __future__ import annotations

import re
from dataclasses import dataclass

from agentforge.config import LLMSettings
from agentforge.schema import UsageError

from ._base import LanguageModel, providers

_FORMS = {
    "anthropic": "anthropic:MODEL",
    "openai": "openai:MODEL, openai:MODEL@http://HOST:PORT/v1",
    "replay": "replay:FILE",
}
_OTHER_URL = re.compile(r"@[^@/\s]*(?:://|:\d+(?:/|$))")


def forms() -> str:
    """What a user may write for an agent, with the providers of plug-ins."""
    return f"{', '.join(_FORMS.get(name, f'{name}:MODEL') for name in providers.names())} or playbook"


@dataclass(frozen=True)
class ModelSpec:
    """A model and, if the user named one, its base URL."""

    model: str
    url: str | None = None


def is_spec(name: str) -> bool:
    """True if this names a language model and not a registered agent."""
    return ":" in name


def parse_target(text: str) -> ModelSpec:
    """Parse `MODEL` or `MODEL@URL`. A model's name may contain an `@`.

    Raises:
        UsageError: the model is missing, or the URL is not valid, or contains a password.
    """
    for scheme in ("@http://", "@https://"):
        model, found, rest = text.partition(scheme)
        if found:
            break
    else:
        model, rest, scheme = text, "", ""
    if not model.strip() or (scheme and not rest.strip("/ ")):
        raise UsageError(f"{text!r} names no model: write {forms()}")
    if "@" in rest.partition("/")[0]:
        raise UsageError(
            f"the URL of {model!r} contains a user or a password, which a run would store: leave it out, and "
            "set AGENTFORGE_LLM_API_KEY if the server needs a key"
        )
    if _OTHER_URL.search(model):
        raise UsageError(f"the URL in {text!r} does not begin with http:// or https://: write {forms()}")
    return ModelSpec(model.strip(), f"{scheme[1:]}{rest.strip()}".rstrip("/") if scheme else None)


def open_model(spec: str, settings: LLMSettings | None = None) -> LanguageModel:
    """Open the model that a specification names; makes no call.

    Raises:
        UsageError: unknown provider, no key, no file.
        MachineError: the provider's package is missing or too old.
    """
    kind, _, target = spec.partition(":")
    if not target:
        raise UsageError(f"{spec!r} names no model: write {forms()}")
    settings = settings or LLMSettings()
    return providers.create(kind, target, settings, options=settings.options.get(kind))
