"""Split a graph: what depends on weights alone is computed apart from the forward (`runtime/derived.py`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from torch.fx import Node

from agentforge.profiling.graph.operators import Kind, kind_of, value_of

from .dataflow import Step, alive, bases, written_to

DERIVE = "af_derive"
"""Mark in a node's `meta`: a move made it, and it depends on weights alone."""
FOLD = "af_fold"
"""Mark of a node of the model whose value shall be derived."""


@dataclass(frozen=True)
class Split:
    """A graph in two parts."""

    steps: list[Step]
    """The forward."""
    body: tuple[Node, ...] = ()
    """Operators that compute the derived values, in order."""
    sources: tuple[Node, ...] = ()
    """Weights and constants that they read."""
    values: tuple[Node, ...] = ()
    """The derived values that the forward reads."""


def split(steps: list[Step], nodes: Sequence[Node]) -> Split:
    """Take the values that moves have marked out of the forward."""
    marked = {n for n in nodes if FOLD in n.meta or (DERIVE in n.meta and _leaves(n))}
    if not marked:
        return Split(steps)
    rest = alive([step for step in steps if step.node not in marked], nodes)
    read = {node for step in rest for node in step.inputs}
    values = tuple(node for node in nodes if node in marked and node in read)
    inside = _before(values)
    body = tuple(n for n in inside if n.op == "call_function")
    sources = tuple(n for n in inside if n.op == "get_attr")
    return Split(rest, body, sources, values)


def _leaves(node: Node) -> bool:
    return any(DERIVE not in user.meta for user in node.users)


def _before(values: Sequence[Node]) -> list[Node]:
    """The values and all that they are computed from, inputs first."""
    ordered: dict[Node, None] = {}
    todo = list(values)[::-1]
    while todo:
        missing = [source for source in todo[-1].all_input_nodes if source not in ordered]
        todo += missing
        if not missing:
            ordered[todo.pop()] = None
    return list(ordered)


def frontier(nodes: Sequence[Node], free: Callable[[Node], bool]) -> list[Node]:
    """Values of weights and constants alone that other operators read, if computing them takes longer than
    seeing that the weights are the same.

    Args:
        free: whether an operator may leave the forward.
    """
    base, written = bases(nodes), written_to(nodes)
    output = next(n for n in nodes if n.op == "output")
    kept = written | {base[n] for n in output.all_input_nodes}  # who gets them may write to them
    known = set[Node]()
    for node in nodes:
        if node.op == "get_attr":
            pure = node not in written and value_of(node) is not None
        else:
            pure = (
                kind_of(node) not in (Kind.OPAQUE, Kind.NONE)
                and free(node)
                and known.issuperset(node.all_input_nodes)
            )
        if pure:
            known.add(node)
    return [
        node
        for node in nodes
        if node in known
        and node.op == "call_function"
        and value_of(node) is not None
        and base[node] not in kept
        and not known.issuperset(node.users)
        and _worth(node)
    ]


def _worth(value: Node) -> bool:
    """Whether computing the value moves more memory than reading its sources."""
    inside = _before([value])
    sources = sum(_bytes(n) for n in inside if n.op == "get_attr")
    working = [n for n in inside if kind_of(n) not in (Kind.VIEW, Kind.NONE)]
    return bool(working) and 2 * sum(map(_bytes, working)) >= sources


def _bytes(node: Node) -> int:
    value = value_of(node)
    return 0 if value is None else value.numel() * value.itemsize
