"""Find products that are worth computing from packed weights (see `runtime/products.py`)."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from math import prod
from typing import Any, NamedTuple

import torch
from torch.fx import Node

from agentforge.profiling.footprint import footprint_of
from agentforge.profiling.graph.operators import argument, value_of
from agentforge.schema import Profile

PRODUCT = "_product"
"""Function that generated code calls."""
CONVOLUTION = "_convolution"
"""The same for convolutions."""
CHANNELS_LAST = "af_channels_last"
"""Mark in the `meta` of a convolution that gets and gives channels-last values."""
WORTH_TRYING = 0.1
"""Packed weights are tried if products take at least this share of the model's time."""
_LEAST_FLOPS, _LEAST_ELEMENTS = 1e7, 1 << 20
"""If a product is smaller than both limits, checking that its weight is unchanged takes longer than
packing saves.
"""

_aten = torch.ops.aten
FUSED = torch.ops.mkldnn._convolution_pointwise.default
"""A convolution and an activation."""
FUSED_WITH_ANOTHER = torch.ops.mkldnn._convolution_pointwise.binary
"""A convolution, and a sum or product with another value."""
_MATRIX = (_aten.mm.default, _aten.matmul.default)
_TURNS = {
    _aten.t.default: (),
    _aten.transpose.int: ((0, 1), (1, 0), (-2, -1), (-1, -2)),
    _aten.numpy_T.default: (),
}
_OPERATORS = frozenset({"aten.linear.default", "aten.addmm.default", *map(str, _MATRIX)})


class Product(NamedTuple):
    """`x @ weight.T + bias`, or `x @ weight + bias` if `transposed`."""

    x: Node
    weight: Node
    bias: Node | None
    transposed: bool


def share(profile: Profile) -> float:
    """Share of a forward's time spent in such products, 0 to 1."""
    spent = sum(b.time_s for b in profile.bottlenecks if not _OPERATORS.isdisjoint(b.call_sites[0].operators))
    return spent / profile.total_s if profile.total_s else 0.0


def packable(nodes: Iterable[Node], weights: Collection[Node]) -> dict[Node, Product]:
    """Nodes that are large float32 products of an input with a weight, on a CPU."""
    found = {node: product for node in nodes if (product := product_of(node)) is not None}
    return {node: p for node, p in found.items() if p.weight in weights and _suits(node, p)}


def product_of(node: Node) -> Product | None:
    """The product that an operator computes, if it is one with a matrix."""
    if node.target is _aten.linear.default:
        x, weight, *bias = node.args
        return _turned(x, weight, bias[0] if bias else node.kwargs.get("bias"), False)
    if node.target is _aten.addmm.default and not node.kwargs:
        bias, x, weight = node.args
        return _turned(x, weight, bias, True)
    if node.target in _MATRIX:
        x, weight = node.args
        return _turned(x, weight, None, True)
    return None


def convolution_of(node: Node) -> tuple[Any, ...] | None:
    """Arguments of a convolution that is computed from packed weights; None for other operators.

    One with an epilogue has two or three more: oneDNN's names of it and of its algorithm, and its operand.
    """
    if node.target is FUSED:
        x, weight, bias, padding, stride, dilation, groups, name, _, algorithm = node.args
        return x, weight, bias, stride, padding, dilation, groups, name, algorithm
    if node.target is FUSED_WITH_ANOTHER:
        x, other, weight, bias, padding, stride, dilation, groups, name = node.args[:9]
        return x, weight, bias, stride, padding, dilation, groups, name, "", other
    if CHANNELS_LAST not in node.meta:
        return None
    names = ("input", "weight", "bias", "stride", "padding", "dilation", "groups")
    values = [argument(node, name) for name in names]
    pairs = [[v, v] if isinstance(v, int) else list(v) * (2 // len(v)) for v in values[3:6]]
    return (*values[:3], *pairs, values[6])


def _turned(x: object, weight: object, bias: object, transposed: bool) -> Product | None:
    """Use the weight itself instead of its transpose."""
    while isinstance(weight, Node) and weight.target in _TURNS:
        source, *dimensions = weight.args
        if dimensions and tuple(dimensions) not in _TURNS[weight.target]:
            return None
        weight, transposed = source, not transposed
    if not isinstance(x, Node) or not isinstance(weight, Node) or not isinstance(bias, (Node, type(None))):
        return None
    return Product(x, weight, bias, transposed)


def _suits(node: Node, product: Product) -> bool:
    values = [value_of(n) for n in (node, product.x, product.weight, product.bias) if n is not None]
    if any(v is None or v.dtype is not torch.float32 or v.device.type != "cpu" for v in values):
        return False
    if any(v is not None and footprint_of(v) is None for v in values):  # sizes that depend on values
        return False
    result, x, weight, *bias = (v for v in values if v is not None)
    if weight.ndim != 2 or x.ndim < 1 or not result.is_contiguous():
        return False
    if any(b.shape != result.shape[-1:] or not b.is_contiguous() for b in bias):  # strides are ignored
        return False
    rows, elements = prod(map(int, x.shape[:-1])), weight.numel()
    return rows > 0 and (2.0 * rows * elements >= _LEAST_FLOPS or elements >= _LEAST_ELEMENTS)
