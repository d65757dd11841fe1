"""Structured answers: JSON schemas that the vendors take, and objects found in whatever was said."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

Answer = TypeVar("Answer", bound=BaseModel)

_UNSUPPORTED = frozenset(
    {"default", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength",
     "maxLength", "pattern", "format", "minItems", "maxItems", "uniqueItems", "title"}
)  # fmt: skip
"""Keywords that one vendor or the other refuses; what they say is checked on the answer instead."""


def strict_schema(model: type[BaseModel]) -> dict[str, Any]:
    """JSON schema of a model as both vendors' strict modes take it.

    Every property is required, nothing else is allowed, and keywords that only constrain values are
    left out: `read` checks them.
    """
    schema: dict[str, Any] = _strict(model.model_json_schema())
    return schema


def _strict(node: Any) -> Any:
    if isinstance(node, list):
        return [_strict(item) for item in node]
    if not isinstance(node, dict):
        return node
    if isinstance(node.get("properties"), dict):
        properties = {name: _strict(child) for name, child in node["properties"].items()}
        rest = {k: _strict(v) for k, v in node.items() if k not in _UNSUPPORTED and k != "properties"}
        return {**rest, "properties": properties, "required": list(properties), "additionalProperties": False}
    return {k: _strict(v) for k, v in node.items() if k not in _UNSUPPORTED}


def read(model: type[Answer], parsed: dict[str, Any] | None) -> Answer | str:
    """The answer, or one sentence that tells its author what does not fit."""
    if parsed is None:
        return "the answer holds no JSON object"
    try:
        return model.model_validate(parsed)
    except ValidationError as error:
        problems = [f"{'.'.join(map(str, e['loc'])) or 'answer'}: {e['msg']}" for e in error.errors()[:5]]
        return "; ".join(problems)


def instruction(schema: dict[str, Any]) -> str:
    """What an endpoint without structured output is told."""
    return "Answer with one JSON object and nothing else. It must fit this JSON schema:\n" + json.dumps(
        schema, indent=1
    )


def find_object(text: str) -> dict[str, Any] | None:
    """The largest JSON object in a text: the whole of it, in a fence, or between prose."""
    whole = _loads(text.strip())
    if whole is not None:
        return whole
    return max(_objects(text), key=lambda pair: pair[0], default=(0, None))[1]


def _objects(text: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """Objects that begin at some brace, with their lengths; none inside another one."""
    decoder, position = json.JSONDecoder(strict=False), 0
    for _ in range(1000):  # a hostile answer may hold any number of braces
        position = text.find("{", position)
        if position < 0:
            return
        try:
            value, end = decoder.raw_decode(text, position)
        except (ValueError, RecursionError):
            position += 1
            continue
        if isinstance(value, dict):
            yield end - position, value
        position = end


def _loads(text: str) -> dict[str, Any] | None:
    try:
        value = json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None
