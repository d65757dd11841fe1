"""What a model thought before its calls of tools: kept as the endpoint sent it, and put back where it was."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from agentforge.schema import content_hash

from .._base import SIGNED, Request

Part = dict[str, Any]


def kept(request: Request, parts: Sequence[Part | None]) -> str:
    """The thoughts of the answer to `request` as `Response.reasoning`; empty if there are none.

    Args:
        parts: of the answer in their order; None is one that is no thought.
    """
    thoughts = [(place, part) for place, part in enumerate(parts) if part is not None]
    if not thoughts:
        return ""
    return SIGNED + json.dumps({"after": _before(request, len(request.messages)), "parts": thoughts})


def put_back(request: Request, turn: int, parts: list[Part]) -> list[Part]:
    """The parts of a turn with its thoughts; without them if anything before the turn has changed since.

    Anthropic refuses thoughts after another beginning: a conversation that became too long lost some turns.
    """
    reasoning = request.messages[turn].reasoning
    if not reasoning.startswith(SIGNED):
        return parts
    found = json.loads(reasoning.removeprefix(SIGNED))
    if found["after"] != _before(request, turn):
        return parts
    parts = list(parts)
    for place, part in found["parts"]:
        parts.insert(place, part)
    return parts


def _before(request: Request, turn: int) -> str:
    """Hash of everything before a turn."""
    said = [message.model_dump(mode="json") for message in request.messages[:turn]]
    return content_hash([request.system, [tool.model_dump(mode="json") for tool in request.tools], said])
