"""Print scheduled steps as straight-line Python that needs only torch."""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch.fx import Node

from .dataflow import Step
from .derived import Split
from .products import CONVOLUTION, PRODUCT, Product, convolution_of
from .streams import START, Streams

READ_DERIVED = "_derived"
"""Function that generated code calls for its derived values."""


class Unprintable(Exception):
    """Straight-line code cannot express the graph; the message names the obstacle."""


def print_forward(
    parts: Split,
    parameters: Sequence[Node],
    calls: Mapping[str, str],
    results: str,
    result_nodes: Sequence[Node],
    title: str,
    streams: Streams | None = None,
    products: Mapping[Node, Product] | None = None,
) -> str:
    """Source of a module with `forward(...)`, and `derive(...)` if there are derived values.

    Args:
        calls: name of the kernel's callable by site; the runtime provides them.
        products: nodes that the runtime's packed product computes.

    Raises:
        Unprintable: an operator, or a constant without a literal.
    """
    steps = parts.steps
    operators: dict[str, str] = {}
    last_use = {node: i for i, step in enumerate(steps) for node in step.inputs}
    kept = {*parameters, *result_nodes, *parts.values}
    switches = _Switches(steps, streams) if streams else None
    derive = _derive(parts, operators)
    lines = [derive.call] if derive else []
    lines += switches.mark(START) if switches else []
    for i, step in enumerate(steps):
        lines += switches.before(i, step.inputs) if switches else []
        packed = products.get(step.node) if products and step.node else None
        convolved = convolution_of(step.node) if step.node else None
        if packed or convolved:
            lines.append(_packed(step, PRODUCT if packed else CONVOLUTION, packed or convolved or ()))
        else:
            lines.append(_statement(step, calls, operators))
        lines += switches.mark(i) if switches else []
        dead = [n for n in dict.fromkeys(step.inputs) if last_use[n] == i and n not in kept]
        if dead:
            lines.append("del " + ", ".join(n.name for n in dead))
    lines += switches.before(len(steps), result_nodes) if switches else []
    lines.append(f"return {results}")
    header = [f'"""{title}"""', "", "import torch", ""]
    header += [f"{name} = {path}" for name, path in sorted(operators.items())]
    functions: list[tuple[str, Sequence[Node], list[str]]] = [
        *([("derive", parts.sources, derive.body)] if derive else []),
        ("forward", parameters, lines),
    ]
    for name, taken, statements in functions:
        header += ["", "", f"def {name}({', '.join(node.name for node in taken)}):"]
        header += [f"    {line}" for line in statements]
    return "\n".join([*header, ""])


class _Derive(NamedTuple):
    call: str
    body: list[str]


def _derive(parts: Split, operators: dict[str, str]) -> _Derive | None:
    """The forward's first statement, which reads the derived values, and the statements that derive them."""
    if not parts.values:
        return None
    body = [_statement(Step(0, node=node), {}, operators) for node in parts.body]
    values = ", ".join(node.name for node in parts.values)
    sources = "".join(f", {node.name}" for node in parts.sources)
    return _Derive(f"{values}, = {READ_DERIVED}(derive{sources})", [*body, f"return ({values},)"])


class _Switches:
    """Writes the statements between steps that run on several streams."""

    def __init__(self, steps: Sequence[Step], streams: Streams) -> None:
        self._of = (*streams.of, 0)
        self._waits = streams.waits
        self._events = events_of(streams)
        self._made = {
            node: stream for step, stream in zip(steps, streams.of, strict=True) for node in step.outputs
        }
        self._told: set[tuple[Node, int]] = set()
        self._current = 0

    def before(self, index: int, inputs: Sequence[Node]) -> list[str]:
        """Statements that switch to the step's stream and wait for its events.

        They name each tensor made on another stream once, so that the allocator does not reuse its memory
        before the reading streams are done, even if an alias is deleted.
        """
        stream = self._of[index]
        read = [(n, stream) for n in dict.fromkeys(inputs) if self._made.get(n, stream) != stream]
        new = [entry for entry in read if entry not in self._told]
        self._told.update(new)
        if stream == self._current and not self._waits[index] and not new:
            return []
        self._current = stream
        events = ", ".join(str(self._events[wait]) for wait in self._waits[index])
        return [f"_on_stream({', '.join([str(stream), f'[{events}]', *(n.name for n, _ in new)])})"]

    def mark(self, index: int) -> list[str]:
        """Statement that marks the step, if another stream waits for it."""
        return [f"_mark({self._events[index]})"] if index in self._events else []


def events_of(streams: Streams) -> dict[int, int]:
    """Number of the event after each step (or `START`) that another stream waits for."""
    marked = sorted({wait for waits in streams.waits for wait in waits})
    return {index: number for number, index in enumerate(marked)}


def _packed(step: Step, function: str, arguments: Sequence[Any]) -> str:
    assert step.node is not None
    return f"{step.node.name} = {function}({', '.join(map(literal, arguments))})"


def _statement(step: Step, calls: Mapping[str, str], operators: dict[str, str]) -> str:
    if step.region is not None:
        arguments = ", ".join(node.name for node in step.region.inputs)
        names = ", ".join(node.name for node in step.outputs)
        comma = "," if step.region.is_tuple and len(step.outputs) == 1 else ""
        return f"{names}{comma} = {calls[step.region.site]}({arguments})  # {step.region.site}"
    node = step.node
    assert node is not None
    if node.op != "call_function":
        raise Unprintable(f"a graph node of kind {node.op} ({node.target})")
    if node.target is operator.getitem:
        return f"{node.name} = {literal(node.args[0])}[{literal(node.args[1])}]"
    arguments = ", ".join(
        [literal(a) for a in node.args] + [f"{k}={literal(v)}" for k, v in node.kwargs.items()]
    )
    return f"{node.name} = {_operator(node.target, operators)}({arguments})"


def _operator(target: Any, operators: dict[str, str]) -> str:
    if isinstance(target, torch._ops.OpOverload):
        namespace, name = target._schema.name.split("::")
        overload = target._overloadname
        alias = f"_{namespace}_{name}_{overload}"
        operators[alias] = f"torch.ops.{namespace}.{name}.{overload}"
        return alias
    module = getattr(target, "__module__", "")
    if module in ("_operator", "operator", "math"):
        name = f"_{target.__name__}"
        operators[name] = f"__import__({module.lstrip('_')!r}).{target.__name__}"
        return name
    raise Unprintable(f"the operator {target}, which has control flow or no name")


def literal(value: Any) -> str:
    """Python source of a constant argument; a node is written as its name.

    Raises:
        Unprintable: its type has no literal.
    """
    if isinstance(value, Node):
        return value.name
    if value is None or isinstance(value, (bool, int, str)):
        return repr(value)
    if isinstance(value, float):
        return repr(value) if math.isfinite(value) else f"float({str(value)!r})"
    if isinstance(value, complex):
        return f"complex({literal(value.real)}, {literal(value.imag)})"
    if isinstance(value, (torch.dtype, torch.layout, torch.memory_format)):
        return str(value)
    if isinstance(value, torch.device):  # a forward runs with its inputs' GPU as the current one
        return f"torch.device({value.type if value.type == 'cuda' else str(value)!r})"
    if isinstance(value, slice):
        return f"slice({literal(value.start)}, {literal(value.stop)}, {literal(value.step)})"
    return _collection(value)


def _collection(value: Any) -> str:
    if type(value).__name__ in ("tuple", "list", "immutable_list", "Size"):
        items = ", ".join(literal(v) for v in value)
        if isinstance(value, tuple):
            return f"({items},)" if len(value) == 1 else f"({items})"
        return f"[{items}]"
    if type(value).__name__ in ("dict", "immutable_dict"):
        return "{" + ", ".join(f"{literal(k)}: {literal(v)}" for k, v in value.items()) + "}"
    raise Unprintable(f"an argument of type {type(value).__name__}")
