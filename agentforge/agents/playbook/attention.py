"""Spelled-out attention as one call of `scaled_dot_product_attention`, by rewriting the traced reference."""

from __future__ import annotations

import textwrap
from typing import Any

import torch
from torch.fx import GraphModule, Node, symbolic_trace

from agentforge.agents._base import CannotCode
from agentforge.harness.convention import load_problem
from agentforge.schema import Definition

ATTENTION = "vendor-attention"
"""The template of solutions that call the library's fused attention."""

_aten = torch.ops.aten
_PRODUCTS = (_aten.matmul.default, _aten.bmm.default)
_SCALES = (_aten.div.Tensor, _aten.mul.Tensor)
_SOURCE = """\
\"\"\"Attention by the library's fused operator.\"\"\"

import torch
from torch import device, inf, nan
from torch.nn.functional import scaled_dot_product_attention


class ModelNew(torch.nn.Module):
{forward}
"""


def attention_source(definition: Definition) -> str:
    """Source of a `ModelNew` that computes a definition's attention with the library's operator.

    Args:
        definition: a region of class `attention`, as profiling extracts it: straight-line ATen calls.

    Raises:
        CannotCode: it is not two products around a scaled, masked softmax.
    """
    try:
        traced = symbolic_trace(load_problem(definition).build(0))
    except Exception as error:
        raise CannotCode(f"the reference is no straight line of operators: {error}") from error
    _rewrite(traced)
    traced.recompile()
    code = traced.code.strip().replace("torch._C._nn.", "").replace("torch.nn.functional.", "")
    return _SOURCE.format(forward=textwrap.indent(code, "    "))


def _rewrite(traced: GraphModule) -> None:
    """Replace the chain from the second product up to the first by one call."""
    graph = traced.graph
    softmax = _single([n for n in graph.nodes if n.target is _aten.softmax.int])
    after = _single(list(softmax.users))
    if after.target not in _PRODUCTS or after.args[0] is not softmax or softmax.args[1] not in (-1, 3):
        raise CannotCode("the softmax is not over the keys of a product with values")
    with graph.inserting_before(after):
        before, scale, mask = _scores(traced, softmax.args[0])
        key = graph.call_function(_aten.transpose.int, (before.args[1], -2, -1))
        fused = graph.create_node(
            "call_function",
            torch.nn.functional.scaled_dot_product_attention,
            (before.args[0], key, after.args[1]),
            {"attn_mask": mask, "scale": scale},
            name="attended",  # its default name would hide the function's in the printed code
        )
    after.replace_all_uses_with(fused)
    graph.eliminate_dead_code()
    graph.lint()


def _scores(traced: GraphModule, node: Any) -> tuple[Node, float, Node | None]:
    """Walk up from the softmax's argument to the first product.

    Returns:
        The product, what its result is multiplied by, and the mask that is applied after that.
    """
    scale = 1.0
    mask: Node | None = None
    while node.target not in _PRODUCTS:
        target: Any = node.target
        arguments: list[Any] = [*node.args, None, None]
        first, second, value = arguments[:3]
        if target in _SCALES and isinstance(second, (int, float)):
            scale = scale / second if target is _aten.div.Tensor else scale * second
        elif mask is not None or scale != 1.0:
            raise CannotCode("a second mask, or a scale after the mask")
        elif target is _aten.add.Tensor and isinstance(second, Node) and not node.kwargs:
            first, mask = (first, second) if _has_product(first) else (second, first)
        elif target is _aten.masked_fill.Scalar and value == float("-inf"):
            mask = traced.graph.call_function(_aten.logical_not.default, (second,))
        else:
            raise CannotCode(f"{target} stands between the product and the softmax")
        if not isinstance(first, Node) or not _has_product(first):
            raise CannotCode("no product feeds the softmax")
        node = first
    return node, scale, mask


def _has_product(node: Node) -> bool:
    """Whether a product is among the nodes that a value comes from."""
    return node.target in _PRODUCTS or any(_has_product(n) for n in node.all_input_nodes)


def _single(nodes: list[Node]) -> Node:
    if len(nodes) != 1:
        raise CannotCode("more than one softmax, or its result is read more than once")
    return nodes[0]
