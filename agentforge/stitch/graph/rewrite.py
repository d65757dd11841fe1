"""Turn an exported graph and its replacements into a unit's plan and generated source.

Runs in the child process that loaded the user's model; results are JSON-able.
"""

from __future__ import annotations

import base64
import io
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.fx import Node
from torch.utils import _pytree

from agentforge.profiling.graph.capture import CapturedUnit

from .dataflow import Replacement, Step, needs, schedule, written_to
from .derived import split
from .kept import kept_tensors, lengths, tied
from .printer import Unprintable, events_of, literal, print_forward
from .products import convolution_of, packable
from .streams import StepCost, Streams, place
from .structure import described


@dataclass
class RewrittenUnit:
    """A unit ready to ship."""

    plan: dict[str, Any]
    source: str
    constants: dict[str, str]
    """Tensors by name, as base64 of `torch.save`."""
    sites: dict[str, str]
    """Kernel by call site, for the replaced regions."""
    refused: dict[str, str] = field(default_factory=dict)
    """Call sites that keep the original code, with the reason."""
    saved_s: float = 0.0
    """Seconds that several streams save per call, computed from the measured times."""


def rewrite(
    unit: CapturedUnit,
    module: torch.nn.Module,
    replacements: Sequence[Replacement],
    source_name: str,
    measured: Mapping[str, tuple[float, float]] | None = None,
    packed: bool = False,
) -> RewrittenUnit:
    """Replace regions in a unit.

    Args:
        replacements: disjoint regions.
        measured: seconds and fill of the nodes; given if independent steps shall use several streams.

    Raises:
        Unprintable: straight-line code cannot express the unit.
    """
    path = unit.path
    nodes = list(unit.graph_module.graph.nodes)
    steps, refused = schedule(nodes, replacements)
    # The graph takes keywords in its own order, which may differ from the call's.
    keywords = _pytree_info(unit).in_spec.child(1).context
    plan = outline(module, path, (unit.args, {name: unit.kwargs[name] for name in keywords}))
    kept = kept_tensors(module, plan["modules"], unit.constants)
    weights, lifted, inputs = _entering(nodes, unit.constants.keys() - kept.keys())
    names = {target: f"{_identifier(unit.name)}_{_identifier(target)}" for target in lifted.values()}
    calls, callables = _call_table(steps)
    results, result_nodes, spec = _results(unit)
    title = f"The forward of {type(module).__name__} ({path or 'the whole model'}) with its kernels."
    parts = split(steps, nodes)
    running = [step.node for step in parts.steps if step.node]
    streams = _streams(parts.steps, measured) if measured else None
    products = packable(running, [*weights, *parts.values]) if packed else {}
    parameters = [*weights, *lifted, *inputs]
    written = written_to(nodes)
    source = print_forward(parts, parameters, calls, results, result_nodes, title, streams, products)
    tensors = [
        {**kept[target], **layout(unit.constants[target])}
        if target in kept
        else _tensor_entry(module, plan["modules"], target)
        for target in weights.values()
    ]
    places = tied(module, plan["modules"], tensors)
    plan |= {
        "unit": unit.name,
        "source": source_name,
        "tensors": tensors,
        "tied": places,
        "lengths": lengths(module, plan["modules"], [*tensors, *places]),
        "constants": [names[target] for target in lifted.values()],
        "replayable": not written & set(inputs),
        "written": [n for n, weight in enumerate(weights) if weight in written],
        "calls": callables,
        "output_spec": spec,
        "branches": {"streams": streams.count, "events": len(events_of(streams))} if streams else None,
        "products": [node.name for node in running if node in products or convolution_of(node)],
        "derived": bool(parts.values),
    }
    constants = {names[target]: _encode(unit.constants[target]) for target in lifted.values()}
    done = {s.region.site: s.region.kernel for s in steps if s.region is not None}
    why = {r.site: reason for r, reason in refused}
    return RewrittenUnit(plan, source, constants, done, why, streams.saved_s if streams else 0.0)


def _streams(steps: Sequence[Step], measured: Mapping[str, tuple[float, float]]) -> Streams | None:
    """Stream of each step; None if one stream is as good."""
    works = []
    for step, needed in zip(steps, needs(steps), strict=True):
        nodes = step.region.nodes if step.region else (step.node,)
        known = [measured[node.name] for node in nodes if node and node.name in measured]
        time_s = sum(seconds for seconds, _ in known)
        works.append(StepCost(needed, time_s, max((fill for _, fill in known), default=1.0)))
    streams = place(works)
    return streams if streams.count > 1 and streams.saved_s > 0 else None


def outline(
    module: torch.nn.Module, path: str, call: tuple[tuple[Any, ...], dict[str, Any]] | None = None
) -> dict[str, Any]:
    """The plan of a unit without generated code: its structure and the call that is dispatched on.

    Args:
        call: None if torch.compile runs every call, and whatever hooks the module has.

    Raises:
        Unprintable: a hook that is not torch's, or an argument that is neither a tensor, a constant, nor a
            container of those.
    """
    return {
        "path": path,
        "unit": path,
        "device": _device(module, call),
        "source": "",
        "signature": _signature(call or ((), {})),
        **described(module, any_hooks=call is None),
        "tensors": [],
        "tied": [],
        "lengths": [],
        "constants": [],
        "replayable": True,
        "written": [],
        "calls": {},
        "output_spec": None,
        "branches": None,
        "products": [],
        "derived": False,
    }


def _entering(
    nodes: Sequence[Node], created: Collection[str]
) -> tuple[dict[Node, str], dict[Node, str], list[Node]]:
    """The graph's inputs: the module's tensors by target, constants that forward creates, tensor inputs."""
    weights: dict[Node, str] = {}
    lifted: dict[Node, str] = {}
    inputs: list[Node] = []
    for node in nodes:
        if node.op == "placeholder" and isinstance(node.meta.get("val"), torch.Tensor):
            inputs.append(node)
        elif node.op == "get_attr" and isinstance(node.meta.get("val"), torch.Tensor):
            (lifted if node.target in created else weights)[node] = str(node.target)
        elif node.op == "get_attr":
            raise Unprintable("a block of operators under another mode or condition")
    return weights, lifted, inputs


def _tensor_entry(
    module: torch.nn.Module, submodules: Sequence[Mapping[str, Any]], target: str
) -> dict[str, Any]:
    *parents, name = target.split(".")
    owner, index = module, 0
    for step in parents:
        index = 1 + next(i for i, m in enumerate(submodules) if m["parent"] == index and m["name"] == step)
        child = owner._modules[step]
        assert child is not None
        owner = child
    kind = next((k for k in ("_parameters", "_buffers") if name in vars(owner)[k]), "")
    if not kind and name not in vars(owner):
        raise Unprintable(f"the tensor {target}, which is computed when it is read")
    return {"module": index, "kind": kind, "name": name, **layout(getattr(owner, name))}


def layout(tensor: torch.Tensor) -> dict[str, Any]:
    """Shape, strides, dtype and device type, for the plan.

    Raises:
        Unprintable: it is sparse, so guards cannot check its strides.
    """
    if tensor.layout is not torch.strided:
        raise Unprintable("a sparse tensor")
    return {
        "shape": list(tensor.shape),
        "strides": list(tensor.stride()),
        "dtype": str(tensor.dtype).removeprefix("torch."),
        "device": tensor.device.type,
    }


def _signature(call: tuple[tuple[Any, ...], dict[str, Any]]) -> dict[str, Any]:
    args, kwargs = call
    containers: list[dict[str, Any]] = []
    leaves: list[dict[str, Any]] = []

    def visit(value: Any, path: list[Any]) -> None:
        if isinstance(value, torch.Tensor):
            if value.is_nested or value.is_quantized or value.layout is not torch.strided:
                raise Unprintable("a nested, quantized or sparse tensor among its arguments")
            leaves.append({"path": path, "tensor": layout(value)})
        elif type(value) in (tuple, list, dict):
            keys = list(value) if isinstance(value, dict) else None
            containers.append(
                {"path": path, "type": type(value).__name__, "length": len(value), "keys": keys}
            )
            for key in value if isinstance(value, dict) else range(len(value)):
                visit(value[key], [*path, key])
        elif value is None or isinstance(value, (bool, int, float, str)):
            leaves.append({"path": path, "constant": value})
        else:
            raise Unprintable(f"an argument of type {type(value).__name__}")

    for index, value in enumerate(args):
        visit(value, [0, index])
    for key, value in kwargs.items():
        visit(value, [1, key])
    return {
        "positional": len(args),
        "keywords": list(kwargs),
        "containers": containers,
        "leaves": leaves,
    }


def _device(module: torch.nn.Module, call: Any) -> str:
    leaves = [*_pytree.tree_leaves(call), *module.parameters()]
    return next((t.device.type for t in leaves if isinstance(t, torch.Tensor)), "cpu")


def _call_table(steps: Sequence[Any]) -> tuple[dict[str, str], dict[str, dict[str, Any]]]:
    """Name of the callable by site, and what the runtime needs for each callable."""
    calls: dict[str, str] = {}
    callables: dict[str, dict[str, Any]] = {}
    for region in (s.region for s in steps if s.region is not None):
        entry = {
            "kernel": region.kernel,
            "inputs": len(region.inputs),
            "outputs": [layout(node.meta["val"]) for node in region.outputs],
            "tuple": region.is_tuple,
        }
        known = next((n for n, e in callables.items() if {**e, "sites": 0} == {**entry, "sites": 0}), None)
        if known is None:
            same = sum(e["kernel"] == region.kernel for e in callables.values())
            known = f"{region.kernel}_{same}" if same else region.kernel
            callables[known] = {**entry, "sites": 0}
        callables[known]["sites"] += 1
        calls[region.site] = known
    return calls, callables


def _results(unit: CapturedUnit) -> tuple[str, list[Node], str | None]:
    """The return expression, its nodes, and the pytree spec if code cannot express the structure.

    The spec is empty if no text can express it either, as of a NamedTuple of the user's.
    """
    output: Any = next(iter(unit.graph_module.graph.find_nodes(op="output")))
    flat = list(output.args[0])
    used = [value for value in flat if isinstance(value, Node)]
    spec = _pytree_info(unit).out_spec
    rest = iter(flat)
    text = _structure(spec, rest)
    if text is not None:
        return text, used, None
    try:
        dumped = _pytree.treespec_dumps(spec)
    except Exception:  # any class that pytree cannot serialise
        dumped = ""
    return f"({', '.join(literal(v) for v in flat)},)", used, dumped


def _pytree_info(unit: CapturedUnit) -> Any:
    graph: Any = unit.graph_module.graph
    return graph._codegen.pytree_info


def _structure(spec: Any, rest: Any) -> str | None:
    if spec.is_leaf():
        return literal(next(rest))
    children = [_structure(child, rest) for child in spec.children()]
    if any(child is None for child in children):
        return None
    if spec.type is tuple:
        return f"({', '.join(map(str, children))}{',' if len(children) == 1 else ''})"
    if spec.type is list:
        return f"[{', '.join(map(str, children))}]"
    if spec.type is dict:
        return "{" + ", ".join(f"{k!r}: {v}" for k, v in zip(spec.context, children, strict=True)) + "}"
    return None


def _encode(tensor: torch.Tensor) -> str:
    stream = io.BytesIO()
    torch.save(tensor.detach().clone(), stream)
    return base64.b64encode(stream.getvalue()).decode()


def _identifier(path: str) -> str:
    return re.sub(r"\W", "_", path) or "model"
