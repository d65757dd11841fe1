"""Cut an exported graph into regions: what one kernel could do, and vendor calls.

Greedy producer-consumer merging in topological order, as compilers fuse (Inductor's scheduler is the
model), but with at most one row structure a region: the same rows for all of its reductions, so that one
row program (a loop over rows, with passes over each row) can run it. A region never holds a vendor call
together with anything else: the epilogue of a GEMM (bias, activation, residual) is a region of its own
that reads the GEMM's output, where its gain can be told from the GEMM's noise. The exception is attention
that is spelled out, which `join_attention` puts together.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator
from dataclasses import dataclass, field

from torch.fx import Graph, Node

from .attention import join_attention
from .normalise import is_functional
from .operators import (
    CONCATENATIONS,
    LOSSES,
    Kind,
    Rows,
    is_in_place,
    keeps_order,
    kind_of,
    numel_of,
    op_name,
    rows_of,
)
from .region import Region, region_of

_MAX_OPERATORS = 40
"""More than any region that we have seen a kernel for; a bound on what one kernel has to hold."""
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
    """Cut a normalised graph into disjoint regions that cover every operator that does work.

    Views between or before the operators of a region belong to it; others belong to none.

    Returns:
        Regions in topological order of their last node.
    """
    state = _Partition({n: i for i, n in enumerate(graph.nodes)}, _touched_by_writes(graph))
    for node in graph.nodes:
        state.visited = state.order[node]
        if kind_of(node) in _FUSIBLE and node not in state.fixed:
            _place(node, state)
    _absorb_views(graph, state)
    regions = [region_of(group.nodes, state.order) for group in _groups(state)]
    regions += [region_of({n, *_items(n)}, state.order) for n in graph.nodes if _stands_alone(n, state)]
    return join_attention(regions, state.order)


def _items(node: Node) -> list[Node]:
    """The `getitem` nodes that unpack a node with several results."""
    return [u for u in node.users if u.target is operator.getitem]


def _groups(state: _Partition) -> list[_Group]:
    return list(dict.fromkeys(state.group_of.values()))


def _stands_alone(node: Node, state: _Partition) -> bool:
    if node in state.group_of or node.op != "call_function":
        return False
    return kind_of(node) is not Kind.VIEW


def _touched_by_writes(graph: Graph) -> set[Node]:
    """Nodes that see memory which an in-place operator writes: they keep their place."""
    if is_functional(graph):
        return set()
    touched: set[Node] = set()
    for node in graph.nodes:
        if not is_in_place(node):
            continue
        touched.add(node)
        base = node.args[0] if node.args else None
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
    """Give a node its own group and merge it with those of its producers that fit."""
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
    """Computing nodes that feed `node` through views, and whether all views on the way keep the order."""
    for argument in node.all_input_nodes:
        source, ordered = argument, True
        while kind_of(source) is Kind.VIEW and source.all_input_nodes:
            ordered = ordered and keeps_order(source)
            source = source.all_input_nodes[0]
        yield source, ordered


def _merged(producer: _Group, consumer: _Group, node: Node, *, ordered: bool) -> _Group | None:
    """The group of both, or None where one row program could not run it.

    Args:
        producer: group that makes a value.
        consumer: group of `node`, which takes it.
        node: the consuming node.
        ordered: False where the value is permuted or sliced on the way.
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
    """Whether the consumer reduces one value a row to a single one: the mean of a loss."""
    if producer.rows is None or consumer.rows is None or producer.rows == consumer.rows:
        return False
    return consumer.rows.count == 1 and consumer.rows.numel == producer.rows.count


def _convex(producer: _Group, consumer: _Group, state: _Partition) -> bool:
    """Whether merging leaves the graph of groups without a cycle.

    A path from the producer that leaves both groups must not come back into the consumer. Views are seen
    through: those between the two will be the region's own. Nodes that were not visited yet cannot lead
    back.
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
    """Give views to the region that alone looks through them, and unpacked results to their maker."""
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
        if _base(node) in owner.nodes or keeps_order(node) or _shares_base(node, owner):
            owner.nodes.add(node)
            state.group_of[node] = owner


def _base(node: Node) -> Node:
    while kind_of(node) is Kind.VIEW and node.all_input_nodes:
        node = node.all_input_nodes[0]
    return node


def _shares_base(node: Node, group: _Group) -> bool:
    """Whether the region reads the view's base by another way too: then it takes the base once."""
    base = _base(node)
    if base.op == "get_attr":
        return False
    readers = {source for member in group.nodes for source in member.all_input_nodes}
    others = (s for s in readers if s is not node and not _leads_to(s, node))
    return any(_base(s) is base for s in others)


def _leads_to(view: Node, node: Node) -> bool:
    """Whether `view` looks through `node`."""
    while kind_of(view) is Kind.VIEW and view.all_input_nodes:
        if view is node:
            return True
        view = view.all_input_nodes[0]
    return False
