"""Rewrite spelled-out attention as one call: the library's operator or a tiled kernel."""

from __future__ import annotations

import textwrap
from typing import Any

import torch
from torch.fx import GraphModule, Node, symbolic_trace

from agentforge.codegen import environment
from agentforge.problems.kernelbench import load_problem
from agentforge.schema import CannotCode, Definition, SourceFile, TensorInput, Workload

ATTENTION = "vendor-attention"
"""The template of solutions that call the library's fused attention."""
FLASH = "cpp/attention.cpp.j2"
"""The template of kernels that compute attention in tiles."""
FLASH_PARAMETERS = ("queries", "keys")

_aten = torch.ops.aten
_PRODUCTS = (_aten.matmul.default, _aten.bmm.default)
_CASTS = (_aten.to.dtype, _aten._to_copy.default, _aten.type_as.default)
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
    """Source of a `ModelNew` that computes attention with the library's operator.

    Raises:
        CannotCode: it is not two products around a scaled, masked softmax.
    """
    return _SOURCE.format(forward=_forward(_fused(definition)))


def flash_attention(
    definition: Definition, workload: Workload, *, queries: int, keys: int
) -> tuple[SourceFile, ...]:
    """Sources of a `ModelNew` whose kernel computes attention in tiles and skips masked ones.

    Args:
        workload: its inputs: float32; a mask may be boolean.
        queries: rows of a tile, a multiple of 12.
        keys: columns of a tile, a multiple of 32.

    Raises:
        CannotCode: it is not two products around a scaled, masked softmax, or not in float32.
    """
    dtypes = {spec.dtype.value for spec in workload.inputs if isinstance(spec, TensorInput)}
    if "float32" not in dtypes or dtypes - {"float32", "bool"}:
        raise CannotCode("the kernel computes in float32 only")
    if queries % 12 or keys % 32:
        raise CannotCode("a tile has a multiple of 12 queries and of 32 keys")
    traced = _fused(definition)
    if any(_type_of(n) not in (None, torch.float32, torch.bool) for n in traced.graph.nodes):
        raise CannotCode("the kernel computes in float32 only")
    mask = next(n.kwargs["attn_mask"] for n in traced.graph.nodes if "attn_mask" in n.kwargs)
    additive = not isinstance(mask, Node) or mask.target is not _aten.logical_not.default
    chosen = {
        "queries": queries,
        "keys": keys,
        "mask": "additive" if additive else "boolean",
        "element": "float" if additive else "uint8_t",
        "forward": _forward(traced),
        "libm": False,
    }
    templates = {
        "model_new.py": "attention.py.j2",
        "kernel.cpp": "attention.cpp.j2",
        "vector_math.h": "vector_math.h.j2",
    }
    return tuple(
        SourceFile(path=path, content=environment().get_template(name).render(chosen))
        for path, name in templates.items()
    )


def _fused(definition: Definition) -> GraphModule:
    """The reference with one call of `scaled_dot_product_attention`."""
    try:
        traced = symbolic_trace(load_problem(definition).build(0))
    except Exception as error:
        raise CannotCode(f"the reference is no straight line of operators: {error}") from error
    fuse(traced)
    traced.recompile()
    return traced


def _forward(traced: GraphModule) -> str:
    """A model's `forward`, indented."""
    code = traced.code.strip().replace("torch._C._nn.", "").replace("torch.nn.functional.", "")
    return textwrap.indent(code, "    ")


def fuse(traced: GraphModule) -> None:
    """Replace the chain from the second product up to the first by one call.

    The softmax may be in float32, and its result cast back: the values have the type of that cast, and the
    call raises if the queries have another.

    Raises:
        CannotCode: it is not two products around a scaled, masked softmax.
    """
    graph = traced.graph
    softmax = _single([n for n in graph.nodes if n.target is _aten.softmax.int])
    weights, after = softmax, _single(list(softmax.users))
    if after.target in _CASTS and after.args[0] is softmax:
        weights, after = after, _single(list(after.users))
    if after.target not in _PRODUCTS or after.args[0] is not weights or softmax.args[1] not in (-1, 3):
        raise CannotCode("the softmax is not over the keys of a product with values")
    with graph.inserting_before(after):
        before, scale, mask = _scores(traced, softmax.args[0])
        key = graph.call_function(_aten.transpose.int, (before.args[1], -2, -1))
        fused = graph.create_node(
            "call_function",
            torch.nn.functional.scaled_dot_product_attention,
            (before.args[0], key, after.args[1]),
            {"attn_mask": mask, "scale": scale},
            name="attended",  # the default name would hide the function's in the printed code
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
        elif _type_of(node) is torch.float32:
            pass  # the call computes scores in float32 anyway
        elif mask is not None or scale != 1.0:
            raise CannotCode("a second mask, or a scale after the mask")
        elif target is _aten.add.Tensor and isinstance(second, Node) and not node.kwargs:
            first, mask = (first, second) if _has_product(first) else (second, first)
        elif target is _aten.masked_fill.Scalar and value == float("-inf"):
            mask = traced.graph.call_function(_aten.logical_not.default, (second,))
        else:
            raise CannotCode(f"{target} is between the product and the softmax")
        if not isinstance(first, Node) or not _has_product(first):
            raise CannotCode("no product feeds the softmax")
        node = first
    return node, scale, mask


def _type_of(node: Node) -> torch.dtype | None:
    """The type that a cast names; None for another node, and if the cast takes a tensor's type."""
    if node.target not in _CASTS:
        return None
    found = node.kwargs.get("dtype", node.args[1] if len(node.args) > 1 else None)
    return found if isinstance(found, torch.dtype) else None


def _has_product(node: Node) -> bool:
    """True if a product is among the nodes that a value depends on."""
    return node.target in _PRODUCTS or any(_has_product(n) for n in node.all_input_nodes)


def _single(nodes: list[Node]) -> Node:
    if len(nodes) != 1:
        raise CannotCode("more than one softmax, or its result is read more than once")
    return nodes[0]
