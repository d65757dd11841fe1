"""API keys: from the environment or `.env`, never logged, stored or shown."""

from __future__ import annotations

import os
from pathlib import Path

from agentforge.schema import UsageError

ENDPOINT_KEY = "AGENTFORGE_LLM_API_KEY"
"""Variable with the key for an endpoint that the user names by URL. The vendors' own keys are never sent to
another host."""


def find_key(*variables: str) -> str | None:
    """Value of the first variable that is set, in the environment and then in `.env`.

    `.env` is not loaded into the environment, so that no child process inherits it.

    Raises:
        UsageError: the value cannot be sent.
    """
    for variable in variables:
        if value := os.environ.get(variable, "").strip():
            return _sendable(variable, value)
    if not Path(".env").is_file():
        return None
    from dotenv import dotenv_values

    values = dotenv_values(".env")
    for variable in variables:
        if value := (values.get(variable) or "").strip():
            return _sendable(variable, value)
    return None


def _sendable(variable: str, key: str) -> str:
    if not (key.isascii() and key.isprintable() and " " not in key):
        raise UsageError(
            f"{variable} contains a character that no key has, such as a space: copy the key again"
        )
    return key


def require_key(vendor: str, *variables: str) -> str:
    """Like `find_key`, but a key must exist.

    Raises:
        UsageError: none is set.
    """
    key = find_key(*variables)
    if key is None:
        raise UsageError(
            f"there is no key for {vendor}: export {variables[0]}=... (or put it in .env), "
            "or use another --llm, for example openai:MODEL@http://127.0.0.1:8000/v1"
        )
    return key


def hidden(text: str, key: str | None) -> str:
    """`text` without the key, in case an endpoint echoed it."""
    return text.replace(key, "***") if key else text
