"""Partition an exported graph into regions that one kernel could compute, and vendor calls.

Producers and consumers are merged greedily in topological order, as in Inductor's scheduler, but all
reductions of a region share the same rows. A GEMM's epilogue is a region of its own, where its gain can be
measured apart from the GEMM's noise.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.fx import Graph, Node

from .attention import join_attention
from .chains import source_of
from .experts import join_experts
from .normalise import is_functional, settles_layout
from .operators import (
    CONCATENATIONS,
    LOSSES,
    Kind,
    Rows,
    is_in_place,
    keeps_order,
    kind_of,
    mutated,
    numel_of,
    op_name,
    rows_of,
)
from .region import Region, region_of

_MAX_OPERATORS = 40
"""Maximum number of operators per region; more than in any region with a known kernel."""
_FUSIBLE = frozenset({Kind.POINTWISE, Kind.REDUCTION, Kind.FACTORY})


@dataclass(eq=False)
class _Group:
    """Nodes merged so far."""

    nodes: set[Node]
    space: int
    """Elements of the full iteration space."""
    rows: Rows | None = None
    operators: int = 1
    only_factories: bool = False
    finished: bool = False
    """A reduction over the rows has been merged: the region ends in a scalar (a loss)."""

    @property
    def spaces(self) -> set[int]:
        return {self.space, self.rows.count} if self.rows else {self.space}


@dataclass
class _Partition:
    """State of the greedy merging."""

    order: dict[Node, int]
    fixed: set[Node]
    group_of: dict[Node, _Group] = field(default_factory=dict)
    visited: int = 0


def partition(graph: Graph) -> tuple[Region, ...]:
    """Partition a normalised graph into disjoint regions that cover every computing operator.

    Views between or before a region's operators belong to it; other views belong to no region, nor does a
    `contiguous` that settles the layout of a region's input.

    Returns:
        Regions in topological order of their last node.
    """
    fixed = _touched_by_writes(graph)
    fixed |= {n for n in graph.nodes if _takes_a_number(n) or settles_layout(n)}
    state = _Partition({n: i for i, n in enumerate(graph.nodes)}, fixed)
    for node in graph.nodes:
        state.visited = state.order[node]
        if kind_of(node) in _FUSIBLE and node not in state.fixed:
            _place(node, state)
    _absorb_views(graph, state)
    regions = [region_of(group.nodes, state.order) for group in _groups(state)]
    regions += [region_of({n, *_items(n)}, state.order) for n in graph.nodes if _stands_alone(n, state)]
    return join_experts(join_attention(regions, state.order), state.order)


def _items(node: Node) -> list[Node]:
    """The `getitem` nodes that unpack a node with several results."""
    return [u for u in node.users if u.target is operator.getitem]


def _groups(state: _Partition) -> list[_Group]:
    return list(dict.fromkeys(state.group_of.values()))


def _stands_alone(node: Node, state: _Partition) -> bool:
    if node in state.group_of or node.op != "call_function":
        return False
    return kind_of(node) is not Kind.VIEW


def _takes_a_number(node: Node) -> bool:
    """True if an operand is computed and no tensor (`.item()`): no kernel takes it, so nothing is merged."""
    return any(isinstance(n.meta.get("val"), (torch.SymInt, torch.SymFloat)) for n in node.all_input_nodes)


def _touched_by_writes(graph: Graph) -> set[Node]:
    """Nodes that see memory written by an in-place operator; they keep their place."""
    if is_functional(graph):
        return set()
    touched: set[Node] = set()
    for node in graph.nodes:
        if not is_in_place(node):
            continue
        touched.add(node)
        for written in mutated(node):
            base: Any = written
            while isinstance(base, Node):
                touched.update({base, *base.users})
                base = base.args[0] if kind_of(base) is Kind.VIEW and base.args else None
    frontier = list(touched)
    while frontier:
        node = frontier.pop()
        if kind_of(node) is Kind.VIEW:
            fresh = set(node.users) - touched
            touched |= fresh
            frontier += fresh
    return touched


def _place(node: Node, state: _Partition) -> None:
    """Give a node its own group and merge it with the producers that fit."""
    rows = rows_of(node) if kind_of(node) is Kind.REDUCTION else None
    group = _Group(
        {node},
        rows.numel if rows else numel_of(node),
        rows,
        only_factories=kind_of(node) is Kind.FACTORY,
    )
    state.group_of[node] = group
    if op_name(node) in LOSSES:
        group.finished = True
    for producer, ordered in _producers(node):
        other = state.group_of.get(producer)
        group = state.group_of[node]
        if other is None or other is group:
            continue
        merged = _merged(other, group, node, ordered=ordered)
        if merged is not None and _convex(other, group, state):
            for member in merged.nodes:
                state.group_of[member] = merged


def _producers(node: Node) -> Iterator[tuple[Node, bool]]:
    """Computing nodes that feed `node` through views; False if a view on the way changes the order."""
    for argument in node.all_input_nodes:
        source, ordered = argument, True
        while kind_of(source) is Kind.VIEW and source.all_input_nodes:
            ordered = ordered and keeps_order(source)
            source = source.all_input_nodes[0]
        yield source, ordered


def _merged(producer: _Group, consumer: _Group, node: Node, *, ordered: bool) -> _Group | None:
    """Merge both groups; None if one row program could not compute the result.

    Args:
        ordered: False if the value is permuted or sliced on the way.
    """
    if producer.operators + consumer.operators > _MAX_OPERATORS:
        return None
    rows = producer.rows or consumer.rows
    both = _Group(
        producer.nodes | consumer.nodes,
        max(producer.space, consumer.space),
        rows,
        producer.operators + consumer.operators,
        only_factories=producer.only_factories and consumer.only_factories,
        finished=producer.finished or consumer.finished,
    )
    if producer.only_factories:
        both.space, both.rows = consumer.space, consumer.rows
        return both
    if producer.finished:
        return both if consumer.space == 1 and consumer.rows is None else None
    if _is_tail(producer, consumer):
        both.space, both.rows, both.finished = producer.space, producer.rows, True
        return both
    if rows is not None and not ordered:
        return None
    if producer.rows and consumer.rows and producer.rows != consumer.rows:
        return None
    if producer.space == consumer.space:
        return both
    if rows is not None and {producer.space, consumer.space} <= {both.space, rows.count}:
        return both
    concatenates = op_name(node) in CONCATENATIONS and rows is None
    return both if concatenates and producer.space < consumer.space else None


def _is_tail(producer: _Group, consumer: _Group) -> bool:
    """True if the consumer reduces one value per row to a single value: the mean of a loss."""
    if producer.rows is None or consumer.rows is None or producer.rows == consumer.rows:
        return False
    return consumer.rows.count == 1 and consumer.rows.numel == producer.rows.count


def _convex(producer: _Group, consumer: _Group, state: _Partition) -> bool:
    """True if merging leaves the graph of groups acyclic.

    A path from the producer that leaves both groups must not return to the consumer.
    """
    seen: set[Node] = set()
    frontier = [u for n in producer.nodes for u in _readers(n) if u not in consumer.nodes]
    while frontier:
        node = frontier.pop()
        if node in seen or node in producer.nodes or state.order[node] > state.visited:
            continue
        if node in consumer.nodes:
            return False
        members = state.group_of[node].nodes if node in state.group_of else {node}
        seen |= members
        frontier += [u for m in members for u in _readers(m)]
    return True


def _readers(node: Node) -> Iterator[Node]:
    """Computing nodes that read a node's value, directly or through views."""
    for user in node.users:
        if kind_of(user) is Kind.VIEW:
            yield from _readers(user)
        else:
            yield user


def _absorb_views(graph: Graph, state: _Partition) -> None:
    """Give views to the only region that uses them, and unpacked results to the region that computes them."""
    for maker, group in list(state.group_of.items()):
        for item in _items(maker):
            group.nodes.add(item)
            state.group_of[item] = group
    for node in reversed(graph.nodes):
        if kind_of(node) is not Kind.VIEW or len(node.users) != 1 or node in state.fixed:
            continue
        if node in state.group_of or node.target is operator.getitem:
            continue
        owner = state.group_of.get(next(iter(node.users)))
        if owner is None or not node.all_input_nodes:
            continue
        if source_of(node) in owner.nodes or keeps_order(node) or _shares_base(node, owner):
            owner.nodes.add(node)
            state.group_of[node] = owner


def _shares_base(node: Node, group: _Group) -> bool:
    """True if the region also reads the view's base in another way; then the base becomes one input."""
    base = source_of(node)
    if base.op == "get_attr":
        return False
    readers = {source for member in group.nodes for source in member.all_input_nodes}
    others = (s for s in readers if s is not node and not _leads_to(s, node))
    return any(source_of(s) is base for s in others)


def _leads_to(view: Node, node: Node) -> bool:
    """True if `view` looks through `node`."""
    while kind_of(view) is Kind.VIEW and view.all_input_nodes:
        if view is node:
            return True
        view = view.all_input_nodes[0]
    return False
