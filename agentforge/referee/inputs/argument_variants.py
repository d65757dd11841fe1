"""Encoded arguments with other layouts, other numbers, longer or shorter lists, or lazy conjugates."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import torch

from ..workers.memory.shared_memory import Layout

_Place = tuple[int | str, ...]
"""Indices and keys that lead to a part of encoded arguments."""
_NUMBERS = 16
"""Numbers that other values are tried for, at most."""


def replaced(arguments: Any, layouts: Sequence[Layout]) -> Any:
    """Encoded arguments with other layouts, in order."""
    remaining = iter(layouts)

    def walk(value: Any) -> Any:
        if isinstance(value, list):
            return [walk(item) for item in value]
        if isinstance(value, dict):
            if "tensor" in value:
                return {**value, "tensor": next(remaining).to_json()}
            return value if "dtype" in value else {key: walk(item) for key, item in value.items()}
        return value

    return walk(arguments)


def conjugated(arguments: Any, tensors: Sequence[torch.Tensor]) -> tuple[Any, list[torch.Tensor]] | None:
    """Encoded arguments with the same complex values as lazy conjugates, and what lies in memory for them;
    None without a complex tensor."""
    if not any(t.is_complex() for t in tensors):
        return None
    for place, tensor in zip(list(_tensors(arguments)), tensors, strict=True):
        if tensor.is_complex():
            arguments = _with(arguments, place, {**_at(arguments, place), "conj": True})
    return arguments, [t.conj_physical() if t.is_complex() else t for t in tensors]


def other_numbers(arguments: Any, *, integers: bool = True) -> Iterator[tuple[str, Any]]:
    """Encoded arguments with another value for one number, with the words that say which.

    Args:
        integers: change integers too.
    """
    for place, number in list(_numbers(arguments))[:_NUMBERS]:
        for other in _others(number) if integers or type(number) is not int else []:
            yield f"{other!r} in place of the argument {number!r}", _with(arguments, place, other)


def other_lengths(
    arguments: Any, tensors: Sequence[torch.Tensor]
) -> Iterator[tuple[str, Any, list[torch.Tensor]]]:
    """Lists of several tensors with one more, and with one fewer: words, encoded arguments, all tensors."""
    places = list(_tensors(arguments))
    for place in dict.fromkeys(place[:-1] for place in places if len(place) > 2):  # not all arguments
        of = [n for n, other in enumerate(places) if other[:-1] == place]
        items = _at(arguments, place)
        if isinstance(items, list) and len(items) == len(of) > 1:
            last = of[-1]
            more, fewer = [*items, items[-1]], items[:-1]
            yield (
                f"{len(more)} tensors in a list",
                _with(arguments, place, more),
                [*tensors[: last + 1], *tensors[last:]],
            )
            yield (
                f"{len(fewer)} tensors in a list",
                _with(arguments, place, fewer),
                [*tensors[:last], *tensors[last + 1 :]],
            )


def _tensors(value: Any, place: _Place = ()) -> Iterator[_Place]:
    """Where tensors lie in encoded arguments, in order."""
    if isinstance(value, list):
        for n, item in enumerate(value):
            yield from _tensors(item, (*place, n))
    elif isinstance(value, dict) and "tensor" in value:
        yield place
    elif isinstance(value, dict) and "dtype" not in value:
        for key, item in value.items():
            yield from _tensors(item, (*place, key))


def _at(value: Any, place: _Place) -> Any:
    for step in place:
        value = value[step]
    return value


def numbers_in(arguments: Any) -> set[float]:
    """The numbers among encoded arguments."""
    return {number for _, number in _numbers(arguments)}


def _numbers(value: Any, place: _Place = ()) -> Iterator[tuple[_Place, float]]:
    """Numbers and booleans in encoded arguments; no keys of mappings, layouts or types."""
    if isinstance(value, (bool, int, float)):
        yield place, value
    elif isinstance(value, list):
        for n, item in enumerate(value):
            yield from _numbers(item, (*place, n))
    elif isinstance(value, dict) and "dict" in value:
        for n, (_, item) in enumerate(value["dict"]):
            yield from _numbers(item, (*place, "dict", n, 1))
    elif isinstance(value, dict) and not value.keys() & {"tensor", "dtype"}:
        for key, item in value.items():
            yield from _numbers(item, (*place, key))


def _others(number: float) -> list[float]:
    if isinstance(number, bool):
        return [not number]
    if isinstance(number, int):
        return [number + 1, number - 1] if number > 0 else [number + 1]
    return [0.75 * number, number + 1.0, number / 64] if math.isfinite(number) else []


def _with(value: Any, place: _Place, other: Any) -> Any:
    """Encoded arguments with something else at one place."""
    if not place:
        return other
    copied = value.copy()
    copied[place[0]] = _with(value[place[0]], place[1:], other)
    return copied
