"""Lazy tensors: a shape and a function from a position to an expression.

Views compose positions, pointwise operators compose expressions, reductions leave a `reduced` node. Nothing
is stored until a buffer is needed (`Lowering.realise`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import prod

import torch

from agentforge.schema import CannotCode

from .expr import Access, Arena, Expr, Ref
from .index import ZERO, Index, ravel

Position = tuple[Index, ...]
Loader = Callable[[Position, Expr | None], Expr]

_KINDS = {
    torch.float32: "f",
    torch.float16: "f",
    torch.bfloat16: "f",
    torch.float64: "d",
    torch.int64: "i",
    torch.int32: "i",
    torch.int16: "i",
    torch.int8: "i",
    torch.uint8: "i",
    torch.bool: "b",
}

DTYPE_OF_KIND = {"f": torch.float32, "d": torch.float64, "i": torch.int64, "b": torch.bool}
"""Widest type of each kind of arithmetic."""
NARROW = (torch.int32, torch.int16, torch.int8, torch.uint8)
"""Types of integers that wrap before the kind of their arithmetic does."""


def kind_of(dtype: torch.dtype) -> str:
    """Kind of arithmetic for elements of a dtype.

    Raises:
        CannotCode: complex and 8-bit float types.
    """
    if dtype not in _KINDS:
        raise CannotCode(f"arithmetic on {dtype} is not supported")
    return _KINDS[dtype]


@dataclass(eq=False)
class Buffer:
    """Memory: an input, a parameter, the result of a vendor call, or a kernel's output."""

    name: str
    shape: tuple[int, ...]
    dtype: torch.dtype
    strides: tuple[int, ...]
    source: str
    """`input`, `extern` or `kernel`."""

    @property
    def contiguous(self) -> bool:
        """True if its elements are dense in row-major order."""
        return self.strides == dense_strides(self.shape)

    @property
    def span(self) -> int:
        """Elements from the first to the last, inclusive."""
        if 0 in self.shape:
            return 0
        return 1 + sum((size - 1) * stride for size, stride in zip(self.shape, self.strides, strict=True))


def dense_strides(shape: Sequence[int]) -> tuple[int, ...]:
    """Row-major strides; dimensions of size 1 follow the same rule."""
    return tuple(max(prod(shape[i + 1 :]), 1) for i in range(len(shape)))


@dataclass(eq=False)
class Lazy:
    """A tensor that is computed at its use."""

    shape: tuple[int, ...]
    dtype: torch.dtype
    load: Loader
    """Value at a position of `shape`; under a mask the position may lie outside."""
    buffer: Buffer | None = None
    """Set if it is a whole buffer in that buffer's own shape."""

    @property
    def kind(self) -> str:
        return kind_of(self.dtype)

    @property
    def numel(self) -> int:
        return prod(self.shape)


@dataclass(eq=False)
class Reduction:
    """`op` over the reduced positions of a body, for each kept position."""

    number: int
    op: str
    """`sum`, `max`, `min`, `prod`."""
    kind: str
    kept: tuple[int, ...]
    reduced: tuple[int, ...]
    body: Callable[[Position, Position, Expr | None], Expr]
    """Value at a kept and a reduced position."""
    dtype: torch.dtype
    stored: Buffer | None = None
    """Buffer of its results, once stored."""

    @property
    def count(self) -> int:
        return prod(self.reduced)


@dataclass
class Pool:
    """Arena and reductions of one lowering."""

    arena: Arena = field(default_factory=Arena)
    reductions: list[Reduction] = field(default_factory=list)
    _caches: list[dict[tuple[Position, int | None], Expr]] = field(default_factory=list)

    def memoised(self, load: Loader) -> Loader:
        """Cache values by position: the graph is a DAG, and the number of paths through it can explode."""
        cache: dict[tuple[Position, int | None], Expr] = {}
        self._caches.append(cache)

        def remembered(position: Position, mask: Expr | None) -> Expr:
            key = (position, None if mask is None else mask.number)
            if key not in cache:
                cache[key] = load(position, mask)
            return cache[key]

        return remembered

    def forget(self) -> None:
        """Clear cached values: something that they inline was stored."""
        for cache in self._caches:
            cache.clear()

    def buffer_lazy(self, buffer: Buffer) -> Lazy:
        """The contents of a buffer."""
        kind = kind_of(buffer.dtype)

        def load(position: Position, mask: Expr | None) -> Expr:
            index = ZERO
            for i, stride in zip(position, buffer.strides, strict=True):
                index = i * stride + index
            return self.arena.load(Access(buffer.name, index), mask, kind)

        return Lazy(buffer.shape, buffer.dtype, self.memoised(load), buffer)

    def reduction(
        self,
        op: str,
        kind: str,
        kept: Sequence[int],
        reduced: Sequence[int],
        body: Callable[[Position, Position, Expr | None], Expr],
        dtype: torch.dtype,
    ) -> Lazy:
        """Register a reduction; return its result as a tensor of shape `kept`.

        Raises:
            CannotCode: nothing is reduced.
        """
        if 0 in reduced:
            raise CannotCode("a tensor is empty")
        node = Reduction(len(self.reductions), op, kind, tuple(kept), tuple(reduced), body, dtype)
        self.reductions.append(node)

        def load(position: Position, mask: Expr | None) -> Expr:
            if node.stored is not None:
                linear = ravel(position, node.kept)
                value = self.arena.load(Access(node.stored.name, linear), mask, kind)
            else:
                value = self.arena.make("reduced", (), Ref(node.number, position), kind)
            return self._narrowed(value, dtype) if op in ("sum", "prod") else value

        return Lazy(node.kept, dtype, load)

    def _narrowed(self, value: Expr, dtype: torch.dtype) -> Expr:
        """A value as elements of a dtype have it: integers are computed in 64 bits."""
        return self.arena.narrow(value, str(dtype).removeprefix("torch.")) if dtype in NARROW else value

    def pointwise(
        self,
        shape: Sequence[int],
        dtype: torch.dtype,
        args: Sequence[Lazy],
        build: Callable[[list[Expr]], Expr],
    ) -> Lazy:
        """Apply `build` to the arguments' values, broadcast to `shape`."""
        shape = tuple(shape)
        kind = kind_of(dtype)

        def load(position: Position, mask: Expr | None) -> Expr:
            values = [a.load(broadcast(position, a.shape), mask) for a in args]
            value = self.arena.cast(build(values), kind)
            if any(value is v and a.dtype == dtype for v, a in zip(values, args, strict=True)):
                return value
            return self._narrowed(value, dtype)

        return Lazy(shape, dtype, self.memoised(load))


def broadcast(position: Position, shape: Sequence[int]) -> Position:
    """Position in a smaller shape that a broadcast position reads."""
    tail = position[len(position) - len(shape) :]
    return tuple(ZERO if size == 1 else index for index, size in zip(tail, shape, strict=True))
