"""Chains of regions that become one region, and who reads a value through views."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from torch.fx import Node

from .operators import Kind, kind_of
from .region import Region, region_of

T = TypeVar("T")
FindChain = Callable[[Region, Mapping[Node, Region]], Sequence[Region]]
"""Gives the chain that a region decides, in order, or nothing. Its second argument is each node's region."""


def join_chains(
    regions: Sequence[Region],
    order: Mapping[Node, int],
    op_type: str,
    find: FindChain,
    beside: Callable[[Sequence[Region]], set[Node]] = lambda _: set(),
) -> tuple[Region, ...]:
    """Merge each chain, with the views between its regions, into one region.

    Args:
        order: position of each node in the graph.
        op_type: of the merged regions.
        beside: further nodes that a chain's region takes in.

    Returns:
        The regions, in topological order of their last node.
    """
    owner = {node: region for region in regions for node in region.nodes}
    joined = list(regions)
    for region in regions:
        parts = find(region, owner)
        if not parts:
            continue
        nodes = {n for part in parts for n in part.nodes} | views_between(parts) | beside(parts)
        joined = [r for r in joined if r not in parts]
        joined.append(replace(region_of(nodes, order), op_type=op_type, vendor=False))
    return tuple(sorted(joined, key=lambda r: order[r.nodes[-1]]))


def source_of(node: T) -> T | Node:
    """The node behind a chain of views."""
    while isinstance(node, Node) and kind_of(node) is Kind.VIEW and node.all_input_nodes:
        node = node.all_input_nodes[0]
    return node


def only_reader(node: Node, owner: Mapping[Node, Region]) -> Region | None:
    """The only region that reads a value, directly or through views.

    None if several regions read it, or if the graph returns it.
    """
    readers: set[Region | None] = set()
    frontier = list(node.users)
    while frontier:
        user = frontier.pop()
        if user in owner:
            readers.add(owner[user])
        elif kind_of(user) is Kind.VIEW:
            frontier += user.users
        else:
            readers.add(None)
    return readers.pop() if len(readers) == 1 else None


def views_between(parts: Sequence[Region]) -> set[Node]:
    """Views through which one part reads another."""
    members = {n for part in parts for n in part.nodes}
    found: set[Node] = set()
    for node in members:
        for argument in node.all_input_nodes:
            path, cursor = [], argument
            while cursor not in members and kind_of(cursor) is Kind.VIEW and cursor.all_input_nodes:
                path.append(cursor)
                cursor = cursor.all_input_nodes[0]
            if cursor in members:
                found.update(path)
    return found
