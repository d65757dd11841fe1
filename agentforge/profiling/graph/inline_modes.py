"""Inline blocks that ran under `no_grad` or a disabled autocast.

A profile and a stitched forward run only without gradients and autocast, so these modes change nothing.
"""

from __future__ import annotations

import operator
from typing import Any

import torch
from torch.fx import GraphModule, Node


def inline_modes(module: GraphModule) -> None:
    """Inline every such block in place; other blocks and the names of other nodes stay."""
    for node in list(module.graph.nodes):
        operands = _operands(node)
        if operands is None:
            continue
        holder, *arguments = operands
        block = getattr(module, str(holder.target))
        inline_modes(block)
        results = _copy(module, block, arguments, node, prefix=str(holder.target))
        for user in list(node.users):
            if user.target is operator.getitem:
                user.replace_all_uses_with(results[user.args[1]])
                module.graph.erase_node(user)
        module.graph.erase_node(node)
        if not holder.users:
            module.graph.erase_node(holder)
    module.graph.lint()


def _operands(node: Node) -> list[Any] | None:
    """The block's module and the values that enter it; None for other nodes."""
    if node.op != "call_function" or any(user.target is not operator.getitem for user in node.users):
        return None
    operators = torch.ops.higher_order
    if node.target is operators.wrap_with_set_grad_enabled:
        return list(node.args[1:])
    if node.target is operators.wrap_with_autocast and node.args[2] is False:
        return list(node.args[4:])
    return None


def _copy(module: GraphModule, block: Any, arguments: list[Any], before: Node, *, prefix: str) -> list[Any]:
    """Copy a block's nodes in front of `before`; return its results in the outer graph.

    Args:
        prefix: begins the names of attributes of the block in `module`.
    """
    outer = before.graph
    values: dict[Node, Any] = {}
    placeholders = iter(arguments)
    for node in block.graph.nodes:
        if node.op == "placeholder":
            values[node] = next(placeholders)
        elif node.op == "output":
            return [values[r] if isinstance(r, Node) else r for r in node.args[0]]
        else:
            with outer.inserting_before(before):
                values[node] = outer.node_copy(node, values.__getitem__)
        if node.op == "get_attr":  # a block within the block
            values[node].target = f"{prefix}_{node.target}"
            setattr(module, values[node].target, getattr(block, str(node.target)))
    raise AssertionError("a graph without output")
