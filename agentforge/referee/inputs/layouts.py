"""The same inputs in other layouts and sizes: not contiguous, fewer rows, one column, other lengths."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Sequence

import torch

from .structure import is_whole, structure_of, two_values

Change = Callable[[torch.Tensor], torch.Tensor | None]
"""Makes an input of the variant from one of the workload; None leaves it unchanged."""
_PARTS = 8
"""Smaller sizes may count parts that differ, such as colours or coordinates: they are not changed alone."""
_SHORTER = 3
"""Sizes that are made smaller, at most."""
_ALONE = 6
"""Sizes of one input that are changed alone, at most."""
_LONG = 16
"""The least size that is made larger."""
_FEW_ROWS = 7
_CHEAP_BYTES, _LARGE_BYTES = 1 << 20, 16 << 20
"""Inputs above the first size get few rows if one of their other sizes changes, and above the second only one
size changes, and becomes much smaller."""
_LONG_BYTES = 8 << 20
"""Inputs of which a size became larger have at most as many bytes."""


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
    turned = tensor.movedim(1, -1)
    # contiguous() would return one channel as it is, though its strides tell torch that it is channels-last
    made = torch.empty_like(turned, memory_format=torch.contiguous_format)
    return made.copy_(turned).movedim(-1, 1)


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


def _largest_place(tensors: Sequence[torch.Tensor], size: int | None, dims: int | None = 1) -> int:
    """The largest integer of inputs without a dimension of that size, or of all: they may be places there, or
    lengths. At least -1.

    Args:
        dims: how many dimensions are looked at: rows alone, or with None all.
    """
    integers = [t for t in tensors if is_whole(t) and t.numel() and size not in t.shape[:dims]]
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


def changes(tensors: Sequence[torch.Tensor], tables: Collection[int] | None = None) -> dict[str, Change]:
    """Variants that fit these inputs, by name.

    Args:
        tables: sizes of the weights, if a place that does not exist must never be looked up.
    """
    found = dict(SAME_SIZES)
    rows, columns = _rows_and_columns(tensors)
    if rows is not None:
        most = _largest_place(tensors, rows)
        found |= {f"{n} rows": _first_rows(n, rows) for n in (rows - 1, _FEW_ROWS, 1, 0) if most < n < rows}
        if rows not in (tables or ()):
            found[f"{rows + 1} rows"] = _more_rows(rows + 1, rows)
    if columns is not None:
        most = -1 if tables is None else _place_in_another(tensors)
        smaller = {columns - columns % 2, _prime_below(columns), 1}  # an even number too
        found |= {
            f"{n} columns": _first_columns(n, columns) for n in sorted(smaller) if max(0, most) < n < columns
        }
    return found


def _place_in_another(tensors: Sequence[torch.Tensor]) -> int:
    """The largest integer of an input that may be a place in another one, which is no mask; at least -1."""
    integers = [t for t in tensors if is_whole(t) or t.dtype is torch.bool]
    masks = {id(t) for t in integers if two_values(t)}
    others = [t for t in tensors if t.dim() and id(t) not in masks]
    return _largest_place(tensors, None) if len(others) > 1 else -1


def _rows_and_columns(tensors: Sequence[torch.Tensor]) -> tuple[int | None, int | None]:
    """The sizes of the first and the last dimension, where they can change alone."""
    shaped = [t for t in tensors if t.dim()]
    rows, columns = {t.shape[0] for t in tensors if t.dim() > 1}, {t.shape[-1] for t in shaped}
    inner, outer = {n for t in shaped for n in t.shape[1:]}, {n for t in shaped for n in t.shape[:-1]}
    # With several inputs, a size must belong to one dimension only: cutting another one changes the operator.
    return (
        rows.pop() if len(rows) == 1 and (len(shaped) == 1 or not rows & inner) else None,
        columns.pop() if len(columns) == 1 and (len(shaped) == 1 or not columns & outer) else None,
    )


def other_sizes(
    tensors: Sequence[torch.Tensor], numbers: Collection[float], *, larger_too: bool = True
) -> dict[str, Change]:
    """Variants with another size of a dimension that `changes` leaves, by name: smaller ones that are prime,
    then one more than twice as large. All dimensions of that size change together.

    Args:
        numbers: what the constructor or a call was given. A size that is among them does not change.
        larger_too: with the one that is larger.
    """
    rows, columns = _rows_and_columns(tensors)
    large = sum(t.nbytes for t in tensors)
    before: Change | None = None
    if rows is not None and _largest_place(tensors, rows) < _FEW_ROWS < rows and large > _CHEAP_BYTES:
        before, rows = _first_rows(_FEW_ROWS, rows), None
    start = [t if before is None else _or_itself(before, t) for t in tensors]
    middle = [n for t in start for n in reversed(t.shape[1:-1])]
    last = [t.shape[-1] for t in start if t.dim() > 1]
    first = [t.shape[0] for t in start if t.dim() > 1]
    cut = [*middle, *(n for n in last if n != columns), *(n for n in first if n != rows)]
    grown = [*last, *sorted(middle, reverse=True)] if larger_too else []
    nbytes = sum(t.nbytes for t in start)
    share = min(1.0, _LARGE_BYTES / max(nbytes, 1))
    found: dict[str, Change] = {}
    for size in [n for n in dict.fromkeys(cut) if n >= _PARTS and n not in numbers]:
        smaller = _smaller(size, share)
        if _largest_place(start, size, dims=None) < smaller:
            found[f"{smaller} in place of the size {size}"] = _after(before, _shorter(size, smaller))
        if len(found) == (_SHORTER if share == 1 else 1):
            break
    for size in [n for n in dict.fromkeys(grown) if n >= _LONG and n not in numbers]:
        larger = 2 * size + 1
        grows = sum(t.nbytes * (larger / size) ** t.shape.count(size) for t in start)
        if grows <= _LONG_BYTES and all(_may_grow(t, size) for t in start):
            found[f"{larger} in place of the size {size}"] = _after(before, _longer(size))
            break
    return found


def sizes_alone(
    tensors: Sequence[torch.Tensor], numbers: Collection[float], measured: Collection[int]
) -> Iterator[tuple[str, list[torch.Tensor]]]:
    """One input with a smaller prime size, if another input keeps that size: words, all tensors.

    Args:
        numbers: as for `other_sizes`.
        measured: numbers of inputs whose sizes the reference reads. Sizes of any others are alike on purpose.
    """
    share = min(1.0, _LARGE_BYTES / max(sum(t.nbytes for t in tensors), 1))
    places = [
        (number, size)
        for number in measured
        for size in dict.fromkeys(tensors[number].shape)
        if size >= _PARTS and size not in numbers
        if any(size in tensors[other].shape for other in measured if other != number)
    ]
    for number, size in places[:_ALONE]:
        smaller = _smaller(size, share)
        made = _shorter(size, smaller)(tensors[number])
        if made is not None and _largest_place(tensors, None) < smaller:
            name = f"{smaller} in place of the size {size} of input {number} alone"
            yield name, [made if n == number else t for n, t in enumerate(tensors)]


def _smaller(size: int, share: float) -> int:
    """A prime below a size, or below a share of it."""
    return _prime_below(size if share == 1 else max(int(size * share), _PARTS))


def _or_itself(change: Change, tensor: torch.Tensor) -> torch.Tensor:
    made = change(tensor)
    return tensor if made is None else made


def _after(before: Change | None, change: Change) -> Change:
    """One change after another one."""
    if before is None:
        return change

    def both(tensor: torch.Tensor) -> torch.Tensor | None:
        made = before(tensor)
        return change(tensor) if made is None else _or_itself(change, made)

    return both


def _shorter(of: int, size: int) -> Change:
    """The first part of each dimension of size `of`."""

    def change(tensor: torch.Tensor) -> torch.Tensor | None:
        if of not in tensor.shape:
            return None
        return tensor[tuple(slice(size if n == of else n) for n in tensor.shape)].contiguous()

    return change


def _longer(of: int) -> Change:
    """Dimensions of size `of` go on with what other rows hold there, so that ties do not become usual."""

    def change(tensor: torch.Tensor) -> torch.Tensor | None:
        made = tensor
        for dim in (d for d, n in enumerate(tensor.shape) if n == of):
            rows = _rows_around(tensor, dim)
            assert rows is not None
            once, twice = made.roll(1, rows), made.roll(2, rows)
            made = torch.cat([made, once, twice.narrow(dim, 0, 1)], dim)
        return None if made is tensor else made

    return change


def _rows_around(tensor: torch.Tensor, dim: int) -> int | None:
    """A dimension of at least three rows outside of another dimension."""
    return next((d for d in range(dim) if tensor.shape[d] > 2), None)


def _may_grow(tensor: torch.Tensor, size: int) -> bool:
    """Whether `_longer` can keep what a tensor's values have in common."""
    dims = [d for d, n in enumerate(tensor.shape) if n == size]
    if not dims:
        return True
    if any(_rows_around(tensor, dim) is None for dim in dims):
        return False
    has = structure_of(tensor)
    return not (has.fragile or has.distinct or has.offsets or (has.norm is not None and has.norm.dim in dims))


def changed(tensors: Sequence[torch.Tensor], change: Change) -> list[torch.Tensor] | None:
    """The inputs of a variant; None if the change applies to none of them."""
    found = [change(t) for t in tensors]
    if all(t is None for t in found):
        return None
    return [t if c is None else c for t, c in zip(tensors, found, strict=True)]


def became_one(before: Sequence[torch.Tensor], after: Sequence[torch.Tensor]) -> frozenset[int]:
    """Sizes that were cut down to 1. If a weight has such a size, the reference broadcasts the input."""
    pairs = [
        (a, b) for x, y in zip(before, after, strict=True) for a, b in zip(x.shape, y.shape, strict=True)
    ]
    return frozenset(a for a, b in pairs if b == 1 < a)
