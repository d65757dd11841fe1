"""Reductions, norms, softmax and pooling as pointwise expressions over `Pool.reduction`s."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import torch

from agentforge.schema import CannotCode

from ..ir.expr import Expr
from ..ir.index import Index
from ..ir.lazy import Lazy, Pool, Position, kind_of
from .pointwise import binary, compare, unary
from .views import VIEWS, pad


def reduce_dims(
    pool: Pool,
    op: str,
    source: Lazy,
    dims: Sequence[int],
    keepdim: bool,
    dtype: torch.dtype,
    prepare: Callable[[Expr], Expr] | None = None,
) -> Lazy:
    """Reduce dimensions of a tensor after applying `prepare` to each element; truth values as 0 and 1."""
    if dtype is torch.bool:
        counted = reduce_dims(pool, op, source, dims, keepdim, torch.int64, prepare)
        return pool.pointwise(counted.shape, dtype, [counted], lambda v: v[0])
    rank = len(source.shape)
    chosen = sorted({d % rank for d in dims}) if rank else []
    kept = [d for d in range(rank) if d not in chosen]
    kind = kind_of(dtype)

    def body(at: Position, over: Position, mask: Expr | None) -> Expr:
        position: list[Index] = [Index.of(0)] * rank
        for d, i in zip(kept, at, strict=True):
            position[d] = i
        for d, i in zip(chosen, over, strict=True):
            position[d] = i
        value = source.load(tuple(position), mask)
        return pool.arena.cast(prepare(value) if prepare else value, kind)

    shape = [source.shape[d] for d in kept]
    result = pool.reduction(op, kind, shape, [source.shape[d] for d in chosen], body, dtype)
    if not keepdim:
        return result
    full = tuple(1 if d in chosen else source.shape[d] for d in range(rank))
    return VIEWS["reshape"](pool, full, [result])


def scaled(pool: Pool, source: Lazy, divisor: float) -> Lazy:
    """Divide every element by a number; a product with its reciprocal can be just below an integer."""
    arena = pool.arena
    by = arena.const(divisor, source.kind)
    return pool.pointwise(source.shape, source.dtype, [source], lambda v: binary(arena, "/", v[0], by))


def _dims(args: Sequence[Any], rank: int, position: int = 1) -> list[int]:
    given = args[position] if len(args) > position else None
    if given is None or given == []:
        return list(range(rank))
    return [given] if isinstance(given, int) else list(given)


def mean(pool: Pool, source: Lazy, dims: Sequence[int], keepdim: bool, dtype: torch.dtype) -> Lazy:
    """Arithmetic mean over dimensions."""
    total = reduce_dims(pool, "sum", source, dims, keepdim, dtype)
    return scaled(pool, total, prod(source.shape[d] for d in dims))


def variance(
    pool: Pool, source: Lazy, dims: Sequence[int], keepdim: bool, correction: float
) -> tuple[Lazy, Lazy]:
    """Variance and mean in two passes, because squares of differences do not cancel."""
    arena = pool.arena
    average = mean(pool, source, dims, True, source.dtype)
    squares = pool.pointwise(
        source.shape, source.dtype, [source, average], lambda v: _square(pool, binary(arena, "-", v[0], v[1]))
    )
    total = reduce_dims(pool, "sum", squares, dims, keepdim, source.dtype)
    count = prod(source.shape[d] for d in dims)
    if not keepdim:
        average = VIEWS["reshape"](pool, total.shape, [average])
    return scaled(pool, total, max(count - correction, 0)), average


def _square(pool: Pool, value: Expr) -> Expr:
    return binary(pool.arena, "*", value, value)


def _simple(op: str) -> Callable[[Pool, list[Any], dict[str, Any], torch.dtype], Lazy]:
    def lower(pool: Pool, args: list[Any], kwargs: dict[str, Any], dtype: torch.dtype) -> Lazy:
        source: Lazy = args[0]
        keepdim = bool(args[2]) if len(args) > 2 else bool(kwargs.get("keepdim", False))
        dims = _dims(args, len(source.shape))
        return reduce_dims(pool, op, source, dims, keepdim, dtype)

    return lower


def _mean(pool: Pool, args: list[Any], kwargs: dict[str, Any], dtype: torch.dtype) -> Lazy:
    source: Lazy = args[0]
    keepdim = bool(args[2]) if len(args) > 2 else False
    return mean(pool, source, _dims(args, len(source.shape)), keepdim, dtype)


def _logical(op: str) -> Callable[[Pool, list[Any], dict[str, Any], torch.dtype], Lazy]:
    """`any` is the maximum, `all` the minimum of the truth values."""

    def lower(pool: Pool, args: list[Any], kwargs: dict[str, Any], dtype: torch.dtype) -> Lazy:
        source: Lazy = args[0]
        keepdim = bool(args[2]) if len(args) > 2 else False
        dims = _dims(args, len(source.shape))
        return reduce_dims(pool, op, source, dims, keepdim, torch.bool, lambda v: pool.arena.cast(v, "b"))

    return lower


def arg_extreme(pool: Pool, op: str, source: Lazy, dim: int | None, keepdim: bool) -> tuple[Lazy, Lazy]:
    """Extreme value and the index of its first occurrence; NaN counts as the extreme, as in torch."""
    arena = pool.arena
    whole = dim is None or not source.shape
    flat = VIEWS["reshape"](pool, (source.numel,), [source]) if whole else source
    axis = 0 if dim is None or whole else dim % len(source.shape)
    value = reduce_dims(pool, op, flat, [axis], True, source.dtype)
    size = flat.shape[axis]

    def first(position: Position, mask: Expr | None) -> Expr:
        x = flat.load(position, mask)
        extreme = value.load(tuple(Index.of(0) if d == axis else i for d, i in enumerate(position)), mask)
        hit = compare(arena, "==", x, extreme)
        if source.kind in "fd":
            hit = arena.make("or", (hit, compare(arena, "!=", x, x)), None, "b")
        return arena.where(hit, arena.index(position[axis]), arena.const(size, "i"))

    places = Lazy(flat.shape, torch.int64, pool.memoised(first))
    index = reduce_dims(pool, "min", places, [axis], True, torch.int64)
    if keepdim and not whole:
        return value, index
    rest = tuple(s for d, s in enumerate(flat.shape) if d != axis)
    shape = (1,) * len(source.shape) if keepdim else rest
    return VIEWS["reshape"](pool, shape, [value]), VIEWS["reshape"](pool, shape, [index])


def softmax(pool: Pool, source: Lazy, dim: int, dtype: torch.dtype, log: bool) -> Lazy:
    """Softmax or log-softmax along a dimension, shifted by the maximum."""
    arena = pool.arena
    peak = reduce_dims(pool, "max", source, [dim], True, source.dtype)

    def shift(v: list[Expr]) -> Expr:
        return binary(arena, "-", v[0], v[1])

    exponentials = pool.pointwise(
        source.shape, source.dtype, [source, peak], lambda v: unary(arena, "exp", shift(v))
    )
    total = reduce_dims(pool, "sum", exponentials, [dim], True, source.dtype)
    if log:
        return pool.pointwise(
            source.shape, dtype, [source, peak, total],
            lambda v: binary(arena, "-", shift(v), unary(arena, "log", v[2])),
        )  # fmt: skip
    return pool.pointwise(
        source.shape, dtype, [exponentials, total],
        lambda v: binary(arena, "*", v[0], unary(arena, "reciprocal", v[1])),
    )  # fmt: skip


def vector_norm(pool: Pool, args: list[Any], kwargs: dict[str, Any], dtype: torch.dtype) -> Lazy:
    """p-norms for p = 1, 2 and infinity."""
    source: Lazy = args[0]
    order = float(args[1]) if len(args) > 1 else 2.0
    dims = _dims(args, len(source.shape), 2)
    keepdim = bool(args[3]) if len(args) > 3 else False
    arena = pool.arena
    if order == 2.0:
        total = reduce_dims(pool, "sum", source, dims, keepdim, dtype, lambda v: _square(pool, v))
        return pool.pointwise(total.shape, dtype, [total], lambda v: unary(arena, "sqrt", v[0]))
    if order not in (1.0, float("inf")):
        raise CannotCode(f"vector norm of order {order} is not supported")
    op = "sum" if order == 1.0 else "max"
    return reduce_dims(pool, op, source, dims, keepdim, dtype, lambda v: unary(arena, "abs", v))


def _pairs(value: Any, spatial: int, default: list[int]) -> list[int]:
    if value is None or value == []:
        return default
    given = [value] if isinstance(value, int) else list(value)
    return given * spatial if len(given) == 1 else given


def pool_windows(
    pool: Pool, source: Lazy, shape: tuple[int, ...], args: list[Any], op: str, spatial: int
) -> Lazy:
    """Max or average pooling over windows of the last `spatial` dimensions.

    Windows at a border average the elements that count, whose number is a sum of ones.
    """
    size = _pairs(args[1], spatial, [])
    stride = _pairs(args[2] if len(args) > 2 else None, spatial, size)
    padding = _pairs(args[3] if len(args) > 3 else None, spatial, [0] * spatial)
    dilation = [1] * spatial
    if op == "max":
        dilation = _pairs(args[4] if len(args) > 4 else None, spatial, dilation)
        ceil_mode, counts_padding, divisor = bool(args[5]) if len(args) > 5 else False, True, None
    else:
        ceil_mode = bool(args[4]) if len(args) > 4 else False
        counts_padding = bool(args[5]) if len(args) > 5 else True
        divisor = args[6] if len(args) > 6 else None
    lead = len(shape) - spatial
    edges = [s + 2 * p for s, p in zip(source.shape[lead:], padding, strict=True)]
    reach = zip(shape[lead:], stride, size, dilation, strict=True)
    ends = [(o - 1) * s + (k - 1) * d + 1 for o, s, k, d in reach]
    whole = (*source.shape[:lead], *map(max, edges, ends))

    def windows(values: Lazy, before: Sequence[int], fill: float) -> Lazy:
        padded = pad(pool, values, whole, [0] * lead + list(before), fill)

        def body(at: Position, over: Position, mask: Expr | None) -> Expr:
            window = (i * s + k * d for i, k, s, d in zip(at[lead:], over, stride, dilation, strict=True))
            return padded.load((*at[:lead], *window), mask)

        return pool.reduction(op, source.kind, shape, size, body, source.dtype)

    if op == "max":
        least = float("-inf") if source.kind in "fd" else torch.iinfo(source.dtype).min
        return windows(source, padding, least)
    if source.kind not in "fd":
        raise CannotCode("average pooling of integers is not supported")
    result = windows(source, padding, 0.0)
    if divisor or not (ceil_mode or (any(padding) and not counts_padding)):
        return scaled(pool, result, divisor or prod(size))
    one = pool.arena.const(1.0, source.kind)
    counted = (*source.shape[:lead], *edges) if counts_padding else source.shape
    ones = Lazy(counted, source.dtype, lambda position, mask: one)
    count = windows(ones, [0] * spatial if counts_padding else padding, 0.0)
    return pool.pointwise(shape, source.dtype, [result, count], lambda v: binary(pool.arena, "/", v[0], v[1]))


REDUCTIONS: dict[str, Callable[[Pool, list[Any], dict[str, Any], torch.dtype], Lazy]] = {
    "sum": _simple("sum"), "prod": _simple("prod"), "amax": _simple("max"), "amin": _simple("min"),
    "mean": _mean, "any": _logical("max"), "all": _logical("min"), "linalg_vector_norm": vector_norm,
}  # fmt: skip
"""Keys are operator names without overload; the last argument is the result's dtype."""
