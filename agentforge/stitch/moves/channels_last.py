"""Run two-dimensional convolutions in channels-last layout, on a CPU from packed weights."""

from __future__ import annotations

from typing import Any

import torch
from torch.fx import Node

from agentforge.profiling.graph.operators import value_of
from agentforge.stitch.graph.products import CHANNELS_LAST

from .unit_graph import UnitGraph, same_storage_order

_aten = torch.ops.aten


class ChannelsLast:
    """Inputs of convolutions become channels-last; the layout passes on until an operator needs another."""

    def apply(self, unit: UnitGraph) -> int:
        """See `MoveRewrite.apply`."""
        turned: dict[Node, Node] = {}
        places = 0

        def enter(node: Node) -> bool:
            nonlocal places
            if not _convolves(unit, node):
                return False
            places += 1
            source: Any = node.args[0]
            if not unit.changed(source):
                if source not in turned:
                    turned[source] = unit.call(
                        _aten.contiguous.default, source, before=node, memory_format=torch.channels_last
                    )
                node.replace_input_with(source, turned[source])
            node.meta[CHANNELS_LAST] = True
            return True

        unit.relayout({}, enter)
        return places


def _convolves(unit: UnitGraph, node: Node) -> bool:
    """A convolution in four dimensions of float32 values that were captured as they lie by default."""
    if node.target is not _aten.conv2d.default or not unit.is_weight(node.args[1]):
        return False
    source = node.args[0]
    values = [value_of(n) for n in (node, *node.all_input_nodes)]
    if not isinstance(source, Node) or unit.is_written(source):
        return False
    if any(v is None or v.dtype is not torch.float32 for v in values):
        return False
    ordered = unit.changed(source) or same_storage_order(source)
    return ordered and same_storage_order(node) and values[0].ndim == 4  # type: ignore[union-attr]
