"""Fold batch norms into the weights of the convolution or linear layer before them."""

from __future__ import annotations

from typing import Any

import torch
from torch.fx import Node

from agentforge.profiling.graph.operators import argument, value_of

from .unit_graph import UnitGraph

_aten = torch.ops.aten
_BEFORE = (_aten.conv1d.default, _aten.conv2d.default, _aten.conv3d.default, _aten.linear.default)


class FoldBatchNorm:
    """`batch_norm(f(x, w, b))` becomes `f(x, w * scale, shift)`, with `scale` and `shift` in float64."""

    def apply(self, unit: UnitGraph) -> int:
        """See `MoveRewrite.apply`."""
        found = [n for n in unit.graph.nodes if n.target is _aten.batch_norm.default and _folds(unit, n)]
        for norm in found:
            _fold(unit, norm)
        return len(found)


def _folds(unit: UnitGraph, norm: Node) -> bool:
    source = norm.args[0]
    if not isinstance(source, Node) or source.target not in _BEFORE or not unit.free(norm, source):
        return False
    value = value_of(source)
    if value is None or (source.target is _aten.linear.default and value.ndim != 2):
        return False
    weights = [source.args[1], _bias(source), *norm.args[1:5]]
    needed = (source.args[1], *norm.args[3:5])
    return (
        not argument(norm, "training")
        and len(source.users) == 1
        and all(w is None or (unit.is_weight(w) and _floats(w, value.dtype)) for w in weights)
        and None not in needed
    )


def _floats(node: Any, dtype: torch.dtype) -> bool:
    value = value_of(node)
    return value is not None and value.dtype == dtype and dtype.is_floating_point


def _bias(source: Node) -> Any:
    return argument(source, "bias")


def _fold(unit: UnitGraph, norm: Node) -> None:
    source: Any = norm.args[0]
    weight, bias = source.args[1], _bias(source)
    gamma, beta, mean, variance = norm.args[1:5]
    value = value_of(weight)
    assert value is not None

    def call(target: Any, *args: Any, **kwargs: Any) -> Node:
        return unit.call(target, *args, before=source, derive=True, **kwargs)

    def wide(node: Any) -> Node:
        return call(_aten._to_copy.default, node, dtype=torch.float64)

    scale = call(_aten.rsqrt.default, call(_aten.add.Scalar, wide(variance), argument(norm, "eps")))
    if gamma is not None:
        scale = call(_aten.mul.Tensor, wide(gamma), scale)
    column = call(_aten.view.default, scale, [-1] + [1] * (value.ndim - 1))
    shift = wide(mean) if bias is None else call(_aten.sub.Tensor, wide(mean), wide(bias))
    shift = call(_aten.neg.default, call(_aten.mul.Tensor, shift, scale))
    if beta is not None:
        shift = call(_aten.add.Tensor, shift, wide(beta))
    scaled = call(_aten.mul.Tensor, wide(weight), column)
    narrow = [call(_aten._to_copy.default, wide_one, dtype=value.dtype) for wide_one in (scaled, shift)]
    source.args = (source.args[0], *narrow, *source.args[3:])
    source.kwargs = {name: v for name, v in source.kwargs.items() if name not in ("weight", "bias")}
    norm.replace_all_uses_with(source)
    unit.graph.erase_node(norm)
