"""Trace a definition's reference to a flat graph of ATen operators on fake tensors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
from torch._decomp import core_aten_decompositions, get_decompositions
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx

from agentforge.problems.kernelbench import load_problem
from agentforge.schema import CannotCode, Definition, TensorInput, Workload

_KEEP_WHOLE = ("scaled_dot_product", "_flash_attention", "_efficient_attention", "baddbmm")
"""Operators whose vendor implementation is faster than kernels made from their decomposition."""


_MOST_UNSAVED = 1024
"""Elements of a buffer whose value a source may contain."""


@dataclass(frozen=True)
class Parameter:
    """A parameter or buffer of the reference's state."""

    name: str
    shape: tuple[int, ...]
    dtype: torch.dtype
    buffer: bool
    unsaved: torch.Tensor | None = None
    """Value of a buffer that the state_dict lacks; zeros if nothing reads it."""


@dataclass(frozen=True)
class Traced:
    """A reference traced for one workload.

    Placeholders come in the order `parameters`, then `inputs`. Each node has its fake result tensor in
    `meta["val"]`.
    """

    graph: torch.fx.Graph
    parameters: tuple[Parameter, ...]
    inputs: tuple[TensorInput, ...]
    """The tensor arguments, in the order of `forward`."""
    is_tuple: bool
    """True if `forward` returns a tuple."""


@cache
def _decompositions() -> dict[Any, Any]:
    """torch's own table without operators that stay whole; making it takes 0.1 s."""
    table = dict(core_aten_decompositions())
    table.update(get_decompositions([torch.ops.aten.native_dropout, torch.ops.aten.index_add]))
    return {op: f for op, f in table.items() if not any(k in str(op) for k in _KEEP_WHOLE)}


def _fake(spec: TensorInput) -> torch.Tensor:
    dtype = getattr(torch, spec.dtype.value)
    if spec.strides is None:
        return torch.empty(spec.shape, dtype=dtype)
    return torch.empty_strided(spec.shape, spec.strides, dtype=dtype)


def trace(definition: Definition, workload: Workload) -> Traced:
    """Trace `Model.forward` for the workload's shapes, dtypes and strides, without computing data.

    Raises:
        CannotCode: the reference cannot be traced (data-dependent control flow), takes containers, returns
            no tensor, changes its inputs, or reads a large buffer that its state_dict lacks.
    """
    if workload.nested:
        raise CannotCode("an input is a list, tuple or dict")
    model = load_problem(definition).build(seed=0)
    if model.training:
        raise CannotCode("the reference is in training mode")
    state = dict(model.named_parameters()) | dict(model.named_buffers())
    buffers = {name for name, _ in model.named_buffers()}
    tensors = [spec for spec in workload.inputs if isinstance(spec, TensorInput)]
    names = list(state)
    output_is_tuple = [False]

    def run(*flat: torch.Tensor) -> Any:
        tensor_values = iter(flat[len(names) :])
        args, kwargs = workload.arguments(lambda _: next(tensor_values))
        result = torch.func.functional_call(model, dict(zip(names, flat, strict=False)), args, kwargs)
        output_is_tuple[0] = isinstance(result, (tuple, list))
        return result

    try:
        with FakeTensorMode(allow_non_fake_inputs=True) as mode, torch.no_grad():
            fakes: Sequence[torch.Tensor] = [mode.from_tensor(t.detach()) for t in state.values()]
            inputs = [*fakes, *map(_fake, tensors)]
            # twice: decompositions also write in place, and only a second trace functionalises those writes
            flat = make_fx(run, decomposition_table=_decompositions())(*inputs)
            traced = make_fx(torch.func.functionalize(flat))(*inputs)
    except CannotCode:
        raise
    except Exception as error:
        message = str(error).strip().splitlines() or [""]
        raise CannotCode(f"the reference cannot be traced: {type(error).__name__}: {message[0]}") from error
    traced.graph.eliminate_dead_code()
    _note_constants(traced)
    if any(node.target is torch.ops.aten.copy_.default for node in traced.graph.nodes):
        raise CannotCode("the reference changes its inputs")
    missing = buffers - model.state_dict().keys()
    unsaved = {
        name: _unsaved(name, state[name].detach(), node)
        for name, node in zip(names, traced.graph.find_nodes(op="placeholder"), strict=False)
        if name in missing
    }
    parameters = tuple(
        Parameter(n, tuple(t.shape), t.dtype, n in buffers, unsaved.get(n)) for n, t in state.items()
    )
    return Traced(traced.graph, parameters, tuple(tensors), output_is_tuple[0])


def _unsaved(name: str, value: torch.Tensor, node: torch.fx.Node) -> torch.Tensor:
    """The value of a buffer that the state_dict lacks, by its placeholder; zeros if nothing reads it."""
    if not node.users:
        return torch.zeros_like(value)
    if value.numel() > _MOST_UNSAVED:
        raise CannotCode(f"the buffer {name} is not saved")
    return value


def _note_constants(traced: torch.fx.GraphModule) -> None:
    """Write the value of each one-element constant into its node's `meta["number"]`."""
    for node in traced.graph.find_nodes(op="get_attr"):
        value = getattr(traced, str(node.target))
        value = getattr(value, "constant", value)  # the constant behind a fake tensor, if known
        if isinstance(value, torch.Tensor) and value.numel() == 1 and not isinstance(value, FakeTensor):
            node.meta["number"] = value.item()
            node.meta["val"] = value


def fake_of(node: torch.fx.Node) -> FakeTensor:
    """The fake tensor that a node returns.

    Raises:
        CannotCode: the node returns something else.
    """
    value = node.meta.get("val")
    if not isinstance(value, torch.Tensor):
        raise CannotCode(f"{node.target} returns no tensor")
    return value
