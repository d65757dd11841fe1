"""Triton kernels: generated ones, and hand-written ones that replace an operator."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import FunctionType
from typing import Any

import torch
from torch.fx import GraphModule, Node, symbolic_trace
from torch.fx.passes.fake_tensor_prop import FakeTensorProp

from agentforge.codegen.library import kernel_templates
from agentforge.codegen.triton.kernels import Blocks
from agentforge.codegen.triton.program import generate_triton
from agentforge.problems.kernelbench import load_problem
from agentforge.schema import CannotCode, Definition, SourceFile, TensorInput, Workload

from .attention import fuse

TRITON_PROGRAM = "triton/model_new_triton.py.j2"
"""The template of generated Triton programs."""
PROGRAM_PARAMETERS = ("block", "max_block", "lanes", "num_warps")
TRITON_KERNEL = "kernels/triton/"
"""Templates with this prefix replace an operator by a kernel of `knowledge_base/kernels/triton`."""

_aten = torch.ops.aten
_STANDS_FOR = "af_kernel"
"""Module of the placeholder functions that stand for a kernel's functions until the code is printed."""
_REDUCTIONS = ("none", "mean", "sum")
_LONGEST = 2**31 - 2**20
"""Sizes of dimensions that the kernels' 32-bit loop counters can reach."""
_ACTIVATIONS: dict[Any, str] = {
    _aten.gelu.default: "gelu", _aten.relu.default: "relu", _aten.silu.default: "silu",
}  # fmt: skip
_SOURCE = """\
{kernel}

from torch import device, inf, nan


class ModelNew(torch.nn.Module):
{forward}
"""

Parameters = dict[str, int | float | str | bool]


def program(
    definition: Definition, workloads: Sequence[Workload], parameters: Parameters, processors: int
) -> tuple[SourceFile, ...]:
    """Generated kernels for a whole region.

    Raises:
        CannotCode: the generator does not support an operator.
    """
    known = {k: v for k, v in parameters.items() if k in PROGRAM_PARAMETERS}
    return generate_triton(definition, workloads, Blocks(processors=max(processors, 1), **known))  # type: ignore[arg-type]


def with_kernel(
    definition: Definition, workload: Workload, name: str, parameters: Parameters
) -> tuple[SourceFile, ...]:
    """The reference with one operator replaced by a hand-written kernel.

    Raises:
        CannotCode: the kernel cannot replace any operator of the region.
    """
    try:
        traced = symbolic_trace(load_problem(definition).build(0))
    except Exception as error:
        raise CannotCode(f"the reference is no straight line of operators: {error}") from error
    if name == "flash-attention" and any(n.target is _aten.softmax.int for n in traced.graph.nodes):
        fuse(traced)
    _propagate_shapes(traced, workload)
    tensors = [value for n in traced.graph.nodes if isinstance(value := n.meta.get("val"), torch.Tensor)]
    if any(size > _LONGEST for tensor in tensors for size in tensor.shape):
        raise CannotCode("a dimension is too long for 32-bit counters")
    replaced = 0
    for node in reversed(list(traced.graph.nodes)):  # a product is taken with the activation that reads it
        call = KERNELS[name](node) if node.op == "call_function" and node.users else None
        if call is not None:
            _replace(traced, call)
            replaced += 1
    if not replaced:
        raise CannotCode(f"no operator here that the kernel {name} computes")
    traced.graph.eliminate_dead_code()
    traced.recompile()
    kernel = kernel_templates()[name].render(parameters)
    code = traced.code.strip().replace(f"{_STANDS_FOR}_", "").replace("torch._C._nn.", "")
    text = _SOURCE.format(kernel=kernel.rstrip(), forward=textwrap.indent(code, "    "))
    return (SourceFile(path="model_new.py", content=text),)


@dataclass(frozen=True)
class _Call:
    """A call of a kernel's host function."""

    instead_of: Node
    function: str
    arguments: tuple[Any, ...]
    named: dict[str, Any] = field(default_factory=dict)
    flat: bool = False
    """Whether the function takes a matrix, so that the first argument's leading dimensions become one."""


def _replace(traced: GraphModule, call: _Call) -> None:
    graph, old = traced.graph, call.instead_of
    with graph.inserting_before(old):
        first, *rest = call.arguments
        if call.flat:
            shape = first.meta["val"].shape
            first = graph.call_function(_aten.reshape.default, (first, [-1, int(shape[-1])]))
        # a node's default name is its function's, and would hide that function in the printed code
        function = _placeholder(call.function)
        new = graph.create_node("call_function", function, (first, *rest), call.named, name="computed")
        if call.flat:
            sizes = [int(n) for n in old.meta["val"].shape]
            new = graph.call_function(_aten.reshape.default, (new, sizes))
        new.meta["val"] = old.meta["val"]
    old.replace_all_uses_with(new)
    graph.erase_node(old)


def _placeholder(name: str) -> Any:
    """A placeholder function that is printed as a call of `name`."""

    def stands_for() -> None:
        """Never called; only its name is read."""

    function = FunctionType(stands_for.__code__, {}, name)
    function.__module__ = _STANDS_FOR
    return function


def _propagate_shapes(traced: GraphModule, workload: Workload) -> None:
    """Give every node a fake tensor in `meta["val"]`."""
    given: list[Any] = []
    for spec in workload.inputs:
        if isinstance(spec, TensorInput):
            dtype = getattr(torch, spec.dtype.value)
            given.append(torch.empty(spec.shape, dtype=dtype, device="meta"))
        else:
            given.append(spec.value)
    try:
        FakeTensorProp(traced).propagate(*given)
    except Exception as error:
        raise CannotCode(f"the reference's shapes are not known: {error}") from error


def _arguments(node: Node, *defaults: Any) -> list[Any]:
    """An operator's arguments by position, with defaults for omitted ones."""
    names = [a.name for a in node.target._schema.arguments]
    given = [*node.args, *defaults[len(node.args) :]]
    for name, value in node.kwargs.items():
        if names.index(name) < len(given):
            given[names.index(name)] = value
    return given


def _rank(node: Any) -> int:
    return len(node.meta["val"].shape)


def _softmax(node: Node) -> _Call | None:
    if node.target not in (
        _aten.softmax.int, _aten._softmax.default, _aten.log_softmax.int, _aten._log_softmax.default,
    ):  # fmt: skip
        return None
    x, dim, dtype = _arguments(node, None, None, None)
    if dim not in (-1, _rank(x) - 1) or dtype not in (None, False, x.meta["val"].dtype):
        return None
    return _Call(node, "softmax", (x,), {"log": "log_softmax" in str(node.target)})


def _layernorm(node: Node) -> _Call | None:
    if node.target is not _aten.layer_norm.default:
        return None
    x, sizes, weight, bias, eps = _arguments(node, None, None, None, None, 1e-5)[:5]
    return _Call(node, "layernorm", (x, weight, bias, eps)) if len(sizes) == 1 else None


def _rmsnorm(node: Node) -> _Call | None:
    if node.target is not _aten.rms_norm.default:
        return None
    x, sizes, weight, eps = _arguments(node, None, None, None, None)
    if len(sizes) != 1 or weight is None:
        return None
    return _Call(node, "rmsnorm", (x, weight, torch.finfo(x.meta["val"].dtype).eps if eps is None else eps))


def _cross_entropy(node: Node) -> _Call | None:
    if node.target is not _aten.cross_entropy_loss.default:
        return None
    x, target, weight, reduction, ignored, smoothing = _arguments(node, None, None, None, 1, -100, 0.0)
    whole = weight is None and not smoothing and _rank(x) == 2 and _rank(target) == 1
    if not whole or target.meta["val"].is_floating_point():
        return None
    return _Call(node, "cross_entropy", (x, target, _REDUCTIONS[reduction], ignored))


def _attention(node: Node) -> _Call | None:
    if node.target is torch.nn.functional.scaled_dot_product_attention:
        q, k, v = node.args
        mask, causal, scale = node.kwargs["attn_mask"], False, node.kwargs["scale"]
    elif node.target is _aten.scaled_dot_product_attention.default:
        q, k, v, mask, dropout, causal = _arguments(node, None, None, None, None, 0.0, False)
        scale = node.kwargs.get("scale")
        if dropout or node.kwargs.get("enable_gqa"):
            return None
    else:
        return None
    if mask is not None or any(_rank(x) != 4 for x in (q, k, v)):
        raise CannotCode("the kernel takes four dimensions and no mask but the causal one")
    heads, size = q.meta["val"].shape[:2], q.meta["val"].shape[3]
    if any(x.meta["val"].shape[:2] != heads or x.meta["val"].shape[3] != size for x in (k, v)) or size > 256:
        raise CannotCode("the kernel takes q, k and v with the same heads, of at most 256 elements")
    return _Call(node, "attention", (q, k, v), {"causal": causal, "scale": scale})


def _matmul(node: Node) -> _Call | None:
    """A product with bias, and the activation if it is its only reader."""
    product, activation = node, ""
    if node.target in _ACTIVATIONS and isinstance(node.args[0], Node) and len(node.args[0].users) == 1:
        if node.kwargs.get("approximate", "none") != "none":
            return None
        product, activation = node.args[0], _ACTIVATIONS[node.target]
    if product.target is _aten.linear.default:
        x, weight, bias = _arguments(product, None, None, None)
        transposed = node.graph.create_node("call_function", _aten.t.default, (weight,))
        node.prepend(transposed)
        return _Call(node, "matmul", (x, transposed, bias, activation), flat=True)
    if product.target is _aten.addmm.default and not product.kwargs and _rank(product.args[0]) == 1:
        bias, a, b = product.args
        return _Call(node, "matmul", (a, b, bias, activation))
    return None


def _gated(node: Node) -> _Call | None:
    """`silu(x @ gate.T) * (x @ up.T)`, in either order, if nothing else reads the products."""
    if node.target is not _aten.mul.Tensor or len(node.all_input_nodes) != 2:
        return None
    for activation, up in (node.args, reversed(node.args)):
        gate: Any = activation.args[0] if activation.target is _aten.silu.default else None
        products = (gate, up)
        if any(not isinstance(p, Node) or p.target is not _aten.linear.default for p in products):
            continue
        (x, of_gate, bias), (same, of_up, other_bias) = (_arguments(p, None, None, None) for p in products)
        alone = all(len(n.users) == 1 for n in (activation, *products))
        if alone and x is same and bias is None and other_bias is None:
            return _Call(node, "gated_products", (x, of_gate, of_up), flat=True)
    return None


KERNELS: dict[str, Callable[[Node], _Call | None]] = {
    "softmax": _softmax,
    "layernorm": _layernorm,
    "rmsnorm": _rmsnorm,
    "cross-entropy": _cross_entropy,
    "flash-attention": _attention,
    "matmul": _matmul,
    "fused-mlp": _gated,
}
"""Matchers by kernel: each returns the call that replaces an operator, or None."""
