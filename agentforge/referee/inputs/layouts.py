"""The same inputs in other layouts and sizes (not contiguous, fewer rows, one column), and other numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch

from ..workers.memory.shared_memory import Layout
from .structure import is_whole

Change = Callable[[torch.Tensor], torch.Tensor | None]
"""Makes an input of the variant from one of the workload; None leaves it unchanged."""
_Place = tuple[int | str, ...]
"""Indices and keys that lead to a part of encoded arguments."""
_NUMBERS = 16
"""Numbers that other values are tried for, at most."""


def _padded(tensor: torch.Tensor) -> torch.Tensor | None:
    """The same values with a gap after each row."""
    if tensor.dim() < 2 or tensor.numel() < 2:
        return None
    wide = tensor.new_zeros((*tensor.shape[:-1], tensor.shape[-1] + 3))
    wide[..., :-3] = tensor
    return wide[..., :-3]


def _spaced(tensor: torch.Tensor) -> torch.Tensor | None:
    """The same values with a gap after each index of every dimension between the first and the last."""
    if tensor.dim() < 3 or tensor.numel() < 2:
        return None
    inner = tensor.shape[1:-1]
    wide = tensor.new_zeros((tensor.shape[0], *(size + 3 for size in inner), tensor.shape[-1]))
    made = wide[(slice(None), *(slice(size) for size in inner))]
    made.copy_(tensor)
    return made


def _transposed(tensor: torch.Tensor) -> torch.Tensor | None:
    """The same values, with the last two dimensions stored in the other order."""
    if tensor.dim() < 2 or tensor.numel() < 2:
        return None
    return tensor.transpose(-1, -2).contiguous().transpose(-1, -2)


def _channels_last(tensor: torch.Tensor) -> torch.Tensor | None:
    """The same values, with the second dimension stored as the innermost one."""
    if tensor.dim() < 3 or tensor.numel() < 2:
        return None
    return tensor.movedim(1, -1).contiguous().movedim(-1, 1)


def _first_rows(rows: int, of: int) -> Change:
    def change(tensor: torch.Tensor) -> torch.Tensor | None:
        if tensor.dim() == 0 or tensor.shape[0] != of:
            return None
        return tensor[:rows].contiguous()

    return change


def _first_columns(columns: int, of: int) -> Change:
    def change(tensor: torch.Tensor) -> torch.Tensor | None:
        if tensor.dim() == 0 or tensor.shape[-1] != of:
            return None
        return tensor[..., :columns].contiguous()

    return change


def _more_rows(rows: int, of: int) -> Change:
    """More rows than before: the last rows are repeated, so that sorted ones stay sorted."""

    def change(tensor: torch.Tensor) -> torch.Tensor | None:
        if tensor.dim() == 0 or tensor.shape[0] != of:
            return None
        return torch.cat([tensor, tensor[2 * of - rows :]])

    return change


def _largest_place(tensors: Sequence[torch.Tensor], size: int) -> int:
    """The largest integer of inputs without as many rows: they may be places there. At least -1."""
    integers = [t for t in tensors if is_whole(t) and t.numel() and (not t.dim() or t.shape[0] != size)]
    return max((int(t.max()) for t in integers), default=-1)


def _prime_below(size: int) -> int:
    """The largest prime below `size`; 1 if there is none."""
    return next((n for n in range(size - 1, 1, -1) if all(n % d for d in range(2, math.isqrt(n) + 1))), 1)


SAME_SIZES: dict[str, Change] = {
    "padded rows": _padded,
    "padded outer dimensions": _spaced,
    "transposed memory": _transposed,
    "channels last": _channels_last,
}
"""Changes that keep every size, by name."""


def changes(tensors: Sequence[torch.Tensor]) -> dict[str, Change]:
    """Variants that fit these inputs, by name."""
    found = dict(SAME_SIZES)
    shaped = [t for t in tensors if t.dim()]
    rows, columns = {t.shape[0] for t in tensors if t.dim() > 1}, {t.shape[-1] for t in shaped}
    inner, outer = {n for t in shaped for n in t.shape[1:]}, {n for t in shaped for n in t.shape[:-1]}
    # With several inputs, a size must belong to one dimension only: cutting another one changes the operator.
    if len(rows) == 1 and (len(shaped) == 1 or not rows & inner):
        size = rows.pop()
        most = _largest_place(tensors, size)
        found |= {f"{n} rows": _first_rows(n, size) for n in (size - 1, 7, 1, 0) if most < n < size}
        found[f"{size + 1} rows"] = _more_rows(size + 1, size)
    if len(columns) == 1 and (len(shaped) == 1 or not columns & outer):
        size = columns.pop()
        found |= {f"{n} columns": _first_columns(n, size) for n in (_prime_below(size), 1) if 0 < n < size}
    return found


def changed(tensors: Sequence[torch.Tensor], change: Change) -> list[torch.Tensor] | None:
    """The inputs of a variant; None if the change applies to none of them."""
    found = [change(t) for t in tensors]
    if all(t is None for t in found):
        return None
    return [t if c is None else c for t, c in zip(tensors, found, strict=True)]


def replaced(arguments: Any, layouts: Sequence[Layout]) -> Any:
    """Encoded arguments with other layouts, in order."""
    remaining = iter(layouts)

    def walk(value: Any) -> Any:
        if isinstance(value, list):
            return [walk(item) for item in value]
        if isinstance(value, dict):
            if "tensor" in value:
                return {"tensor": next(remaining).to_json()}
            return value if "dtype" in value else {key: walk(item) for key, item in value.items()}
        return value

    return walk(arguments)


def other_numbers(arguments: Any) -> Iterator[tuple[str, Any]]:
    """Encoded arguments with another value for one number, with the words that say which."""
    for place, number in list(_numbers(arguments))[:_NUMBERS]:
        for other in _others(number):
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


def became_one(before: Sequence[torch.Tensor], after: Sequence[torch.Tensor]) -> frozenset[int]:
    """Sizes that were cut down to 1. If a weight has such a size, the reference broadcasts the input."""
    pairs = [
        (a, b) for x, y in zip(before, after, strict=True) for a, b in zip(x.shape, y.shape, strict=True)
    ]
    return frozenset(a for a, b in pairs if b == 1 < a)
