"""Operators that only move elements: results read another tensor at a mapped position."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from agentforge.schema import CannotCode

from ..ir.expr import Expr
from ..ir.index import Index, Indirect, ravel, unravel
from ..ir.lazy import Lazy, Pool, Position, broadcast
from .pointwise import element

View = Callable[[Pool, tuple[int, ...], list[Any]], Lazy]
"""Arguments: pool, shape of the result, positional arguments with tensors as `Lazy`."""


def _mapped(
    pool: Pool, source: Lazy, shape: tuple[int, ...], mapping: Callable[[Position], Position]
) -> Lazy:
    return Lazy(shape, source.dtype, lambda position, mask: source.load(mapping(position), mask))


def _dim(args: Sequence[Any], position: int, rank: int, default: int = 0) -> int:
    dim = args[position] if len(args) > position else default
    return int(dim) % max(rank, 1)


def _reshape(pool: Pool, shape: tuple[int, ...], args: list[Any]) -> Lazy:
    source: Lazy = args[0]
    return _mapped(pool, source, shape, lambda p: unravel(ravel(p, shape), source.shape))


def _permute(pool: Pool, shape: tuple[int, ...], args: list[Any]) -> Lazy:
    source: Lazy = args[0]
    rank = len(source.shape)
    dims = [d % rank for d in args[1]]
    return _mapped(pool, source, shape, lambda p: tuple(p[dims.index(d)] for d in range(rank)))


def _transpose(pool: Pool, shape: tuple[int, ...], args: list[Any]) -> Lazy:
    rank = len(shape)
    if rank < 2:
        return args[0]
    a, b = (0, 1) if len(args) < 3 else (args[1] % rank, args[2] % rank)
    dims = list(range(rank))
    dims[a], dims[b] = dims[b], dims[a]
    return _permute(pool, shape, [args[0], dims])


def _expand(pool: Pool, shape: tuple[int, ...], args: list[Any]) -> Lazy:
    source: Lazy = args[0]
    return _mapped(pool, source, shape, lambda p: broadcast(p, source.shape))


def _slice(pool: Pool, shape: tuple[int, ...], args: list[Any]) -> Lazy:
    source: Lazy = args[0]
    dim = _dim(args, 1, len(shape))
    size = source.shape[dim]
    start = args[2] if len(args) > 2 and args[2] is not None else 0
    start = min(max(start + size if start < 0 else start, 0), size)
    step = args[4] if len(args) > 4 else 1
    return _mapped(
        pool, source, shape, lambda p: tuple(i * step + start if d == dim else i for d, i in enumerate(p))
    )


def _select(pool: Pool, shape: tuple[int, ...], args: list[Any]) -> Lazy:
    source: Lazy = args[0]
    dim = _dim(args, 1, len(source.shape))
    index = Index.of(int(args[2]) % source.shape[dim])
    return _mapped(pool, source, shape, lambda p: (*p[:dim], index, *p[dim:]))


def _flip(pool: Pool, shape: tuple[int, ...], args: list[Any]) -> Lazy:
    dims = {d % len(shape) for d in args[1]}
    return _mapped(
        pool, args[0], shape,
        lambda p: tuple(Index.of(shape[d] - 1) - i if d in dims else i for d, i in enumerate(p)),
    )  # fmt: skip


def _diagonal(pool: Pool, shape: tuple[int, ...], args: list[Any]) -> Lazy:
    source: Lazy = args[0]
    offset = args[1] if len(args) > 1 else 0
    a, b = _dim(args, 2, len(source.shape), 0), _dim(args, 3, len(source.shape), 1)

    def mapping(p: Position) -> Position:
        rest = iter(p[:-1])
        along = {a: p[-1] + max(-offset, 0), b: p[-1] + max(offset, 0)}
        return tuple(along[d] if d in along else next(rest) for d in range(len(source.shape)))

    return _mapped(pool, source, shape, mapping)


def _cat(pool: Pool, shape: tuple[int, ...], args: list[Any]) -> Lazy:
    parts = [p for p in args[0] if p.shape != (0,)]
    dim = _dim(args, 1, len(shape))
    dtype = parts[0].dtype
    for part in parts[1:]:
        dtype = torch.promote_types(dtype, part.dtype)
    kind = Lazy(shape, dtype, parts[0].load).kind
    arena = pool.arena

    def load(position: Position, mask: Expr | None) -> Expr:
        ends = [0]
        for part in parts:
            ends.append(ends[-1] + part.shape[dim])
        value: Expr | None = None
        for part, start in reversed(list(zip(parts, ends, strict=False))):
            index = position[dim]
            here = arena.at_least(index, start)
            before_end = arena.negate(arena.at_least(index, start + part.shape[dim]))
            inside = arena.both(mask, arena.both(here, before_end))
            if inside is not None and inside.op == "const":
                continue
            moved = tuple(i - start if d == dim else i for d, i in enumerate(position))
            loaded = arena.cast(part.load(moved, inside), kind)
            value = loaded if value is None else arena.where(before_end, loaded, value)
        return arena.const(0, kind) if value is None else value

    return Lazy(shape, dtype, pool.memoised(load))


def pad(pool: Pool, source: Lazy, shape: tuple[int, ...], before: Sequence[int], fill: float) -> Lazy:
    """Pad a tensor: position p of the result is p - before of the source, or `fill` outside it."""
    arena = pool.arena
    outside = element(arena, arena.const(fill, source.kind), source.dtype)

    def load(position: Position, mask: Expr | None) -> Expr:
        inside: Expr | None = None
        moved = tuple(i - b for i, b in zip(position, before, strict=True))
        for index, size in zip(moved, source.shape, strict=True):
            inside = arena.both(inside, arena.at_least(index, 0))
            inside = arena.both(inside, arena.negate(arena.at_least(index, size)))
        if inside is None:
            return source.load(moved, mask)
        return arena.where(inside, source.load(moved, arena.both(mask, inside)), outside)

    return Lazy(shape, source.dtype, pool.memoised(load))


def _constant_pad(pool: Pool, shape: tuple[int, ...], args: list[Any]) -> Lazy:
    source: Lazy = args[0]
    amounts: list[int] = list(args[1])
    before = [0] * len(shape)
    for i in range(len(amounts) // 2):
        before[len(shape) - 1 - i] = amounts[2 * i]
    return pad(pool, source, shape, before, args[2] if len(args) > 2 else 0)


def _checked(
    pool: Pool, index: Lazy, position: Position, mask: Expr | None, extent: int, low: int = 0
) -> Index:
    """An index read from a tensor, whose values are in [low, extent); -1 means the last element.

    Another value reads the first element, and the kernel reports it.
    """
    arena = pool.arena
    value = arena.cast(index.load(position, mask), "i")
    if mask is not None:  # where the mask is false the value is arbitrary
        value = arena.where(mask, value, arena.const(0, "i"))
    return Index.of(Indirect(arena.make("checked", (value,), (low, extent), "i"), extent))


def _chosen(*, whole: bool) -> View:
    """`gather`, whose index has the result's shape if `whole`, or `index_select`, whose index is a vector."""

    def view(pool: Pool, shape: tuple[int, ...], args: list[Any]) -> Lazy:
        source: Lazy = args[0]
        index: Lazy = args[2]
        dim = _dim(args, 1, len(source.shape))

        def load(position: Position, mask: Expr | None) -> Expr:
            at = position if whole else (position[dim],)
            chosen = _checked(pool, index, at, mask, source.shape[dim])
            return source.load(tuple(chosen if d == dim else i for d, i in enumerate(position)), mask)

        return Lazy(shape, source.dtype, pool.memoised(load))

    return view


def _embedding(pool: Pool, shape: tuple[int, ...], args: list[Any]) -> Lazy:
    table: Lazy = args[0]
    index: Lazy = args[1]

    def load(position: Position, mask: Expr | None) -> Expr:
        chosen = _checked(pool, index, position[:-1], mask, table.shape[0])
        return table.load((chosen, position[-1]), mask)

    return Lazy(shape, table.dtype, pool.memoised(load))


def _index(pool: Pool, shape: tuple[int, ...], args: list[Any]) -> Lazy:
    """`x[i, j, :]` with index tensors in adjacent dimensions."""
    source: Lazy = args[0]
    given: list[Lazy | None] = list(args[1])
    used = [d for d, g in enumerate(given) if g is not None]
    tensors = [g for g in given if g is not None]
    if any(g.dtype is torch.bool for g in tensors):
        raise CannotCode("indexing with a boolean mask is not supported: the shape depends on data")
    if used != list(range(used[0], used[-1] + 1)):
        raise CannotCode("indexing with tensors in non-adjacent dimensions is not supported")
    rank = max(len(g.shape) for g in tensors)
    start = used[0]

    def load(position: Position, mask: Expr | None) -> Expr:
        at = position[start : start + rank]
        chosen = [
            _checked(pool, g, broadcast(at, g.shape), mask, source.shape[d], -source.shape[d])
            for d, g in zip(used, tensors, strict=True)
        ]
        return source.load((*position[:start], *chosen, *position[start + rank :]), mask)

    return Lazy(shape, source.dtype, pool.memoised(load))


def _repeat(pool: Pool, shape: tuple[int, ...], args: list[Any]) -> Lazy:
    source: Lazy = args[0]
    padded = (*([1] * (len(shape) - len(source.shape))), *source.shape)
    blocks = tuple(n for r, s in zip(args[1], padded, strict=True) for n in (r, s))

    def mapping(p: Position) -> Position:
        split = unravel(ravel(p, shape), blocks)[1::2]
        return split[len(shape) - len(source.shape) :]

    return _mapped(pool, source, shape, mapping)


def _tri(lower: bool) -> View:
    def view(pool: Pool, shape: tuple[int, ...], args: list[Any]) -> Lazy:
        source: Lazy = args[0]
        diagonal = args[1] if len(args) > 1 else 0

        def load(position: Position, mask: Expr | None) -> Expr:
            offset = position[-1] - position[-2] - diagonal
            above = pool.arena.at_least(offset, 1 if lower else 0)
            zero = pool.arena.const(0, source.kind)
            value = source.load(position, mask)
            return pool.arena.where(above, zero, value) if lower else pool.arena.where(above, value, zero)

        return Lazy(shape, source.dtype, pool.memoised(load))

    return view


VIEWS: dict[str, View] = {
    "view": _reshape, "reshape": _reshape, "_unsafe_view": _reshape, "squeeze": _reshape,
    "unsqueeze": _reshape, "flatten": _reshape, "unflatten": _reshape, "permute": _permute,
    "transpose": _transpose, "t": _transpose, "numpy_T": _transpose, "expand": _expand, "slice": _slice,
    "select": _select, "flip": _flip, "diagonal": _diagonal, "cat": _cat, "constant_pad_nd": _constant_pad,
    "gather": _chosen(whole=True), "index_select": _chosen(whole=False), "embedding": _embedding,
    "index": _index, "repeat": _repeat, "tril": _tri(True), "triu": _tri(False),
}  # fmt: skip
"""Keys are operator names without overload."""
