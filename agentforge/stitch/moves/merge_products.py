"""Merge products that share an input: Q, K and V, or gate and up."""

from __future__ import annotations

from collections.abc import Hashable

import torch
from torch.fx import Node

from agentforge.profiling.graph.operators import Kind, kind_of, value_of
from agentforge.stitch.graph.products import Product, product_of

from .unit_graph import UnitGraph

_aten = torch.ops.aten


class MergeProducts:
    """Products of one input with several weights become one with the joined weights, cut in slices."""

    def apply(self, unit: UnitGraph) -> int:
        """See `MoveRewrite.apply`."""
        groups: dict[Hashable, dict[Node, Product]] = {}
        for node in unit.graph.nodes:
            product, value = product_of(node) if unit.free(node) else None, value_of(node)
            if product is not None and value is not None and _joins(unit, product):
                key = (_same(product.x), product.transposed, product.bias is None, value.dtype)
                groups.setdefault(key, {})[node] = product
        merged = [group for group in groups.values() if len(group) > 1]
        changed: dict[Node, torch.Tensor] = {}
        for group in merged:
            changed |= _merge(unit, group)
        unit.relayout(changed)
        return len(merged)


def _joins(unit: UnitGraph, product: Product) -> bool:
    weights = [w for w in (product.weight, product.bias) if w is not None]
    values = [value_of(w) for w in weights]
    sizes = [v.ndim for v in values if v is not None]
    fits = all(map(unit.is_weight, weights)) and sizes == [2, 1][: len(weights)]
    return fits and not unit.is_written(product.x)


def _merge(unit: UnitGraph, group: dict[Node, Product]) -> dict[Node, torch.Tensor]:
    """The slices, each with the value that was captured for the product."""
    first, product = next(iter(group.items()))
    weight = unit.call(
        _aten.cat.default,
        [p.weight for p in group.values()],
        1 if product.transposed else 0,
        before=first,
        derive=True,
    )
    if product.transposed:
        weight = unit.call(_aten.t.default, weight, before=first, derive=True)
    biases = [p.bias for p in group.values() if p.bias is not None]
    bias = unit.call(_aten.cat.default, biases, before=first, derive=True) if biases else None
    whole = unit.call(_aten.linear.default, product.x, weight, bias, before=first)
    slices: dict[Node, torch.Tensor] = {}
    start = 0
    for node in group:
        old: torch.Tensor = node.meta["val"]
        end = start + old.shape[-1]
        part = unit.call(_aten.slice.Tensor, whole, -1, start, end, before=first)
        node.replace_all_uses_with(part)
        slices[part] = old
        start = end
    for node in group:
        unit.graph.erase_node(node)
    return slices


def _same(value: object) -> Hashable:
    """A key that equal views of one value share: each view in a captured graph has one user."""
    if isinstance(value, Node) and kind_of(value) is Kind.VIEW and not value.kwargs:
        return (value.target, *map(_same, value.args))
    return tuple(map(_same, value)) if isinstance(value, (list, tuple)) else value
