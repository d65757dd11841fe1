"""Fuse the operator after a convolution into oneDNN's call, which applies it before it writes the result."""

from __future__ import annotations

from typing import Any

import torch
from torch.fx import Node

from agentforge.profiling.graph.operators import argument, value_of
from agentforge.stitch.graph.products import FUSED, FUSED_WITH_ANOTHER, convolution_of

from .unit_graph import UnitGraph

_aten = torch.ops.aten
_ACTIVATIONS = {
    _aten.silu.default: "swish",
    _aten.hardswish.default: "hardswish",
    _aten.sigmoid.default: "sigmoid",
    _aten.tanh.default: "tanh",
}
"""Without ReLU and hard sigmoid: oneDNN's turn a NaN into a number."""
_WITH_ANOTHER = {_aten.add.Tensor: "add", _aten.mul.Tensor: "mul"}


class FuseEpilogues:
    """Convolutions from packed weights, each with the activation, sum or product that alone reads it."""

    def apply(self, unit: UnitGraph) -> int:
        """See `MoveRewrite.apply`."""
        return sum(_fuse(unit, node) for node in list(unit.graph.nodes))


def _fuse(unit: UnitGraph, node: Node) -> bool:
    """Replace two operators by one in the place of the second: its other operand is known only there."""
    convolution, user = convolution_of(node), next(iter(node.users), None)
    if convolution is None or user is None or len(node.users) > 1 or not unit.free(user):
        return False
    x, weight, bias, stride, padding, dilation, groups = convolution
    places = (weight, bias, padding, stride, dilation, groups)
    arguments: tuple[Any, ...]
    if activation := _activation(user):
        name, algorithm = activation
        target, arguments = FUSED, (x, *places, name, [], algorithm)
    elif (other := _other(node, user)) is not None:
        target, arguments = FUSED_WITH_ANOTHER, (x, other, *places, _WITH_ANOTHER[user.target])
        arguments = (*arguments, None, None, [], None)
    else:
        return False
    with unit.graph.inserting_before(user):
        fused = unit.graph.call_function(target, arguments)
    fused.meta["val"] = user.meta["val"]
    user.replace_all_uses_with(fused)
    unit.graph.erase_node(user)
    unit.graph.erase_node(node)
    return True


def _activation(user: Node) -> tuple[str, str] | None:
    """oneDNN's name of the activation, and its algorithm."""
    if user.target is _aten.gelu.default:
        return "gelu", str(argument(user, "approximate"))
    return (_ACTIVATIONS[user.target], "") if user.target in _ACTIVATIONS else None


def _other(node: Node, user: Node) -> Node | None:
    """The other operand of a sum or product of two values with one shape, dtype and layout."""
    if user.target not in _WITH_ANOTHER or user.kwargs:
        return None
    operands = [n for n in user.args if isinstance(n, Node)]
    values = [value_of(n) for n in (user, *operands)]
    forms = {(v.dtype, v.shape, v.stride()) for v in values if v is not None}
    other = [n for n in operands if n is not node]
    return other[0] if len(other) == 1 and None not in values and len(forms) == 1 else None
