"""Normalisations: two-pass moments, then one multiply-add."""

from __future__ import annotations

from typing import Any

import torch

from agentforge.schema import CannotCode

from ..ir.expr import Expr
from ..ir.lazy import Lazy
from .composites import Composites
from .pointwise import build_pointwise
from .reductions import variance
from .views import VIEWS


class Norms(Composites):
    """Layer, group and batch norm in addition to the other composites."""

    def _affine(self, normed: Lazy, weight: Lazy | None, bias: Lazy | None) -> Lazy:
        for name, operand in (("mul", weight), ("add", bias)):
            if operand is not None:
                normed = self.apply(name, [normed, operand], normed.shape, normed.dtype)
        return normed

    def _inverse_deviation(self, spread: Lazy, epsilon: float) -> Lazy:
        """`1 / sqrt(spread + epsilon)`."""
        arena = self.pool.arena

        def inverse(v: list[Expr]) -> Expr:
            shifted = build_pointwise(arena, "add", [v[0], arena.const(epsilon, v[0].kind)], v[0].kind, {})
            return build_pointwise(arena, "rsqrt", [shifted], v[0].kind, {})

        return self.pool.pointwise(spread.shape, spread.dtype, [spread], inverse)

    def _standardise(self, source: Lazy, dims: list[int], epsilon: float) -> tuple[Lazy, Lazy, Lazy]:
        spread, average = variance(self.pool, source, dims, True, 0)
        rstd = self._inverse_deviation(spread, epsilon)
        centred = self.apply("sub", [source, average], source.shape, source.dtype)
        return self.apply("mul", [centred, rstd], source.shape, source.dtype), average, rstd

    def op_native_layer_norm(
        self, node: torch.fx.Node, args: list[Any], kwargs: dict[str, Any]
    ) -> tuple[Any, ...]:
        source, normalised, weight, bias, epsilon = args
        dims = list(range(len(source.shape) - len(normalised), len(source.shape)))
        normed, average, rstd = self._standardise(source, dims, epsilon)
        return self._affine(normed, weight, bias), average, rstd

    def op_native_group_norm(
        self, node: torch.fx.Node, args: list[Any], kwargs: dict[str, Any]
    ) -> tuple[Any, ...]:
        source, weight, bias, batch, _, _, groups, epsilon = args
        grouped = VIEWS["reshape"](
            self.pool, (batch, groups, source.numel // max(batch * groups, 1)), [source]
        )
        normed, average, rstd = self._standardise(grouped, [2], epsilon)
        shaped = VIEWS["reshape"](self.pool, source.shape, [normed])
        return self._affine(shaped, *self._per_channel(source, weight, bias)), average, rstd

    def _per_channel(self, source: Lazy, *vectors: Lazy | None) -> list[Lazy | None]:
        shape = (1, -1, *([1] * (len(source.shape) - 2)))
        return [
            None
            if v is None
            else VIEWS["reshape"](self.pool, tuple(v.shape[0] if s < 0 else s for s in shape), [v])
            for v in vectors
        ]

    def op_native_batch_norm(
        self, node: torch.fx.Node, args: list[Any], kwargs: dict[str, Any]
    ) -> tuple[Any, ...]:
        source, weight, bias, average, spread, training, _, epsilon = args
        if training:
            if average is not None or spread is not None:
                raise CannotCode("batch norm that updates its running statistics is not supported")
            dims = [d for d in range(len(source.shape)) if d != 1]
            normed, mean, rstd = self._standardise(source, dims, epsilon)
            return self._affine(normed, *self._per_channel(source, weight, bias)), mean, rstd
        rstd = self._inverse_deviation(spread, epsilon)
        means, factors = self._per_channel(source, average, rstd)
        assert means is not None and factors is not None
        centred = self.apply("sub", [source, means], source.shape, source.dtype)
        normed = self.apply("mul", [centred, factors], source.shape, source.dtype)
        return self._affine(normed, *self._per_channel(source, weight, bias)), None, None

    def op__native_batch_norm_legit_no_training(
        self, node: torch.fx.Node, args: list[Any], kwargs: dict[str, Any]
    ) -> tuple[Any, ...]:
        *running, momentum, epsilon = args
        return self.op_native_batch_norm(node, [*running, False, momentum, epsilon], kwargs)
