"""Structured answers: JSON schemas that the vendors accept, and JSON objects in any text."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

Answer = TypeVar("Answer", bound=BaseModel)

_UNSUPPORTED = frozenset(
    {"default", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength",
     "maxLength", "pattern", "format", "minItems", "maxItems", "uniqueItems", "title"}
)  # fmt: skip
"""Keywords that at least one vendor refuses. `read` checks them on the answer instead."""


def strict_schema(model: type[BaseModel]) -> dict[str, Any]:
    """JSON schema of a model for the strict modes of both vendors.

    Every property is required and no other is allowed. Keywords that only constrain values are omitted;
    `read` checks them. A reference with a description of its own is replaced by what it refers to.
    """
    whole = model.model_json_schema()
    schema: dict[str, Any] = _strict(whole, whole.get("$defs", {}))
    return schema


def _strict(node: Any, named: dict[str, Any]) -> Any:
    if isinstance(node, list):
        return [_strict(item, named) for item in node]
    if not isinstance(node, dict):
        return node
    rest = {k: _strict(v, named) for k, v in node.items() if k not in _UNSUPPORTED and k != "properties"}
    if "$ref" in rest and len(rest) > 1:  # strict mode takes no other key beside it (openai/lib/_pydantic.py)
        referred = named[rest.pop("$ref").removeprefix("#/$defs/")]
        return {**_strict(referred, named), **rest}
    if isinstance(node.get("properties"), dict):
        properties = {name: _strict(child, named) for name, child in node["properties"].items()}
        return {**rest, "properties": properties, "required": list(properties), "additionalProperties": False}
    return rest


def read(model: type[Answer], objects: Sequence[dict[str, Any]]) -> Answer | str:
    """The last object that fits, or one sentence for the model that says what does not fit.

    Args:
        objects: `Response.objects`, the last one first: drafts come before the answer.
    """
    nearest, most = "the answer contains no JSON object", -1
    for parsed in objects:
        try:
            return model.model_validate(parsed)
        except ValidationError as error:
            known = len(model.model_fields.keys() & parsed.keys())
            if known > most:
                problems = (f"{'.'.join(map(str, e['loc'])) or 'answer'}: {e['msg']}" for e in error.errors())
                nearest, most = "; ".join(islice(problems, 5)), known
    return nearest


def instruction(schema: dict[str, Any]) -> str:
    """The instruction for an endpoint without structured output."""
    return "Answer with one JSON object and nothing else. It must fit this JSON schema:\n" + json.dumps(
        schema, indent=1
    )


def find_objects(text: str) -> tuple[dict[str, Any], ...]:
    """All JSON objects of a text, also in fences and prose, the last one first; none inside another one."""
    whole = _loads(text.strip())
    return (whole,) if whole is not None else tuple(_objects(text))[::-1]


def _objects(text: str) -> Iterator[dict[str, Any]]:
    decoder, position = json.JSONDecoder(strict=False), 0
    for _ in range(1000):  # a hostile answer may contain any number of braces
        position = text.find("{", position)
        if position < 0:
            return
        try:
            value, end = decoder.raw_decode(text, position)
        except (ValueError, RecursionError):
            position += 1
            continue
        if isinstance(value, dict):
            yield value
        position = end


def _loads(text: str) -> dict[str, Any] | None:
    try:
        value = json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


_THOUGHT = re.compile(r"<(think|thinking)>.*?</\1>", re.DOTALL | re.IGNORECASE)
_OPEN_THOUGHT = re.compile(r"<think(?:ing)?>", re.IGNORECASE)
_END_OF_THOUGHT = re.compile(r"</think(?:ing)?>", re.IGNORECASE)


def without_thoughts(text: str) -> str:
    """A text without what a reasoning model wrote in `<think>`, for servers that do not separate it.

    A thought without a beginning starts with the text: chat templates may write `<think>` themselves.
    """
    if _END_OF_THOUGHT.search(text) is None and _OPEN_THOUGHT.search(text) is None:
        return text
    text = _THOUGHT.sub("", text)
    *_, start = (0, *(end.end() for end in _END_OF_THOUGHT.finditer(text)))
    return _OPEN_THOUGHT.split(text[start:], maxsplit=1)[0].lstrip("\n")
