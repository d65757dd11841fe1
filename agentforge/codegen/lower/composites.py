"""Operators composed of other operators: constants, splits, extremes, softmax, pooling."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from agentforge.schema import CannotCode

from ..capture.trace import fake_of
from ..ir.expr import Expr
from ..ir.lazy import Lazy, Pool, kind_of
from .pointwise import HALVES, STEPS, build_pointwise, element
from .products import name_of
from .reductions import arg_extreme, pool_windows, reduce_dims, softmax, variance
from .views import VIEWS

POOLS = {
    "avg_pool1d": ("sum", 1), "avg_pool2d": ("sum", 2), "avg_pool3d": ("sum", 3),
    "max_pool1d": ("max", 1), "max_pool2d": ("max", 2), "max_pool2d_with_indices": ("max", 2),
    "max_pool3d_with_indices": ("max", 3),
}  # fmt: skip
"""Pooling operators: reduction and number of spatial dimensions."""
_CHOICES = {
    "_to_copy", "abs", "alias", "amax", "amin", "clamp", "clamp_max", "clamp_min", "clone", "contiguous",
    "copy", "detach", "getitem", "hardtanh", "lift_fresh_copy", "max", "maximum", "min", "minimum", "neg",
    "relu", "split_with_sizes", "where", *(name for name, (op, _) in POOLS.items() if op == "max"),
}  # fmt: skip
"""Operators beside views whose results are elements of their arguments, or these with another sign."""


class Composites:
    """`op_NAME(node, args, kwargs)` lowers `aten.NAME`; tensor arguments are `Lazy`."""

    def __init__(self, pool: Pool) -> None:
        self.pool = pool

    def apply(
        self, name: str, operands: list[Lazy], shape: Sequence[int], dtype: torch.dtype, **extra: Any
    ) -> Lazy:
        kind = kind_of(dtype)
        arena = self.pool.arena
        return self.pool.pointwise(
            shape, dtype, operands,
            lambda v: build_pointwise(arena, name, [arena.cast(x, kind) for x in v], kind, extra),
        )  # fmt: skip

    def clamp(self, fake: torch.Tensor, source: Lazy, low: Any, high: Any) -> Lazy:
        arena = self.pool.arena
        tensors = [t for t in (source, low, high) if isinstance(t, Lazy)]
        kind = kind_of(fake.dtype)

        def build(values: list[Expr]) -> Expr:
            given = iter(values[1:])
            bounds: dict[str, Any] = {}
            for key, bound in (("low", low), ("high", high)):
                if isinstance(bound, Lazy):
                    bounds[key] = next(given)
                elif bound is not None:
                    bounds[key] = element(arena, arena.const(bound, kind), fake.dtype)
            return build_pointwise(arena, "clamp", [arena.cast(values[0], kind)], kind, bounds)

        return self.pool.pointwise(fake.shape, fake.dtype, tensors, build)

    def pooling(self, node: torch.fx.Node, name: str, args: list[Any]) -> Any:
        op, spatial = POOLS[name]
        values = node.meta["val"]
        shape = tuple((values[0] if isinstance(values, (tuple, list)) else values).shape)
        result = pool_windows(self.pool, args[0], shape, args, op, spatial)
        return (result, None) if isinstance(values, (tuple, list)) else result

    def op_split_with_sizes(self, node: torch.fx.Node, args: list[Any], kwargs: dict[str, Any]) -> list[Lazy]:
        source, sizes, *rest = args
        dim = (rest[0] if rest else 0) % len(source.shape)
        parts: list[Lazy] = []
        start = 0
        for size in sizes:
            shape = tuple(size if d == dim else s for d, s in enumerate(source.shape))
            parts.append(VIEWS["slice"](self.pool, shape, [source, dim, start, start + size]))
            start += size
        return parts

    def op_hardtanh(self, node: torch.fx.Node, args: list[Any], kwargs: dict[str, Any]) -> Lazy:
        low, high = [*args[1:], -1.0, 1.0][:2] if len(args) != 2 else (args[1], 1.0)
        return self.clamp(fake_of(node), args[0], low, high)

    def op_clamp_min(self, node: torch.fx.Node, args: list[Any], kwargs: dict[str, Any]) -> Lazy:
        return self.clamp(fake_of(node), args[0], args[1], None)

    def op_clamp_max(self, node: torch.fx.Node, args: list[Any], kwargs: dict[str, Any]) -> Lazy:
        return self.clamp(fake_of(node), args[0], None, args[1])

    def op_copy(self, node: torch.fx.Node, args: list[Any], kwargs: dict[str, Any]) -> Lazy:
        return self._converted(node, args[1])

    def op__to_copy(self, node: torch.fx.Node, args: list[Any], kwargs: dict[str, Any]) -> Lazy:
        return self._converted(node, args[0])

    op_convert_element_type = op__to_copy

    def _converted(self, node: torch.fx.Node, source: Lazy) -> Lazy:
        """A cast; one to a half type rounds if an operator can tell.

        Otherwise it does not: arithmetic of half types is fp32, and a store rounds.
        """
        fake = fake_of(node)
        arena, kind = self.pool.arena, kind_of(fake.dtype)
        rounds = fake.dtype in HALVES and fake.dtype != source.dtype and _is_told(node)

        def build(v: list[Expr]) -> Expr:
            value = arena.cast(v[0], kind)
            if not rounds:
                return value
            if value.op == "const":
                return element(arena, value, fake.dtype)
            return arena.make("narrow", (value,), str(fake.dtype).removeprefix("torch."), kind)

        return self.pool.pointwise(fake.shape, fake.dtype, [source], build)

    def op_full(self, node: torch.fx.Node, args: list[Any], kwargs: dict[str, Any]) -> Lazy:
        return self.constant(fake_of(node), args[1])

    def op_full_like(self, node: torch.fx.Node, args: list[Any], kwargs: dict[str, Any]) -> Lazy:
        return self.constant(fake_of(node), args[1])

    def op_scalar_tensor(self, node: torch.fx.Node, args: list[Any], kwargs: dict[str, Any]) -> Lazy:
        return self.constant(fake_of(node), args[0])

    def constant(self, fake: torch.Tensor, value: Any) -> Lazy:
        """A tensor filled with one number."""
        if isinstance(value, Lazy):
            raise CannotCode("a constant that depends on data is not supported")
        arena = self.pool.arena
        constant = element(arena, arena.const(value, kind_of(fake.dtype)), fake.dtype)
        return Lazy(tuple(fake.shape), fake.dtype, lambda position, mask: constant)

    def op_arange(self, node: torch.fx.Node, args: list[Any], kwargs: dict[str, Any]) -> Lazy:
        fake = fake_of(node)
        start, step = (args[0], args[2] if len(args) > 2 else 1) if len(args) > 1 else (0, 1)
        arena = self.pool.arena
        if not all(isinstance(v, int) for v in (start, step)):
            raise CannotCode("arange with fractions is not supported")
        places = Lazy(tuple(fake.shape), torch.int64, lambda p, mask: arena.index(p[0] * step + start))
        return self._converted(node, places)

    def op_var(self, node: torch.fx.Node, args: list[Any], kwargs: dict[str, Any]) -> Lazy:
        return self._variance(args, kwargs)[0]

    def op_var_mean(self, node: torch.fx.Node, args: list[Any], kwargs: dict[str, Any]) -> tuple[Lazy, Lazy]:
        return self._variance(args, kwargs)

    def _variance(self, args: list[Any], kwargs: dict[str, Any]) -> tuple[Lazy, Lazy]:
        source: Lazy = args[0]
        rank = len(source.shape)
        dims = [d % rank for d in (args[1] if len(args) > 1 and args[1] else range(rank))]
        correction = kwargs.get("correction", 1)
        return variance(
            self.pool,
            source,
            dims,
            bool(kwargs.get("keepdim", False)),
            1 if correction is None else correction,
        )

    def op__softmax(self, node: torch.fx.Node, args: list[Any], kwargs: dict[str, Any]) -> Lazy:
        return softmax(
            self.pool, args[0], args[1] % max(len(args[0].shape), 1), fake_of(node).dtype, log=False
        )

    def op__log_softmax(self, node: torch.fx.Node, args: list[Any], kwargs: dict[str, Any]) -> Lazy:
        return softmax(
            self.pool, args[0], args[1] % max(len(args[0].shape), 1), fake_of(node).dtype, log=True
        )

    def op_argmax(self, node: torch.fx.Node, args: list[Any], kwargs: dict[str, Any]) -> Lazy:
        return self._arg("max", args)[1]

    def op_argmin(self, node: torch.fx.Node, args: list[Any], kwargs: dict[str, Any]) -> Lazy:
        return self._arg("min", args)[1]

    def _arg(self, op: str, args: list[Any]) -> tuple[Lazy, Lazy]:
        dim = args[1] if len(args) > 1 else None
        return arg_extreme(self.pool, op, args[0], dim, bool(args[2]) if len(args) > 2 else False)

    def op_max(self, node: torch.fx.Node, args: list[Any], kwargs: dict[str, Any]) -> Any:
        return self._extreme("max", args)

    def op_min(self, node: torch.fx.Node, args: list[Any], kwargs: dict[str, Any]) -> Any:
        return self._extreme("min", args)

    def _extreme(self, op: str, args: list[Any]) -> Any:
        if len(args) > 1:
            return self._arg(op, args)
        source: Lazy = args[0]
        return reduce_dims(self.pool, op, source, range(len(source.shape)), False, source.dtype)


def _is_told(node: torch.fx.Node) -> bool:
    """True if an operator can tell a cast that rounds from one that does not.

    Its result has another type, or steps. It reads the cast, or a tensor whose elements are chosen from it.
    """
    dtype = fake_of(node).dtype
    seen, queue = {node}, [node]
    while queue:
        for reader in queue.pop().users:
            name, value = name_of(reader), reader.meta.get("val")
            results = value if isinstance(value, (tuple, list)) else [value]
            if any(isinstance(r, torch.Tensor) and r.dtype != dtype for r in results):
                return True
            if name in STEPS or name == "sign" or reader.kwargs.get("rounding_mode"):
                return True
            if (name in VIEWS or name in _CHOICES) and reader not in seen:
                seen.add(reader)
                queue.append(reader)
    return False
