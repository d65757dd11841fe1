"""Contract each region of a graph to one step, and order the steps by data and alias hazards."""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.fx import Node
from torch.utils import _pytree

from agentforge.profiling.graph.operators import (
    Kind,
    arguments,
    kind_of,
    mutated,
    run_fake,
    schema_of,
    storages,
)

_NEW_MEMORY = frozenset({torch.Tag.dynamic_output_shape, torch.Tag.data_dependent_output})
"""Operators that are not run on fake tensors: each run makes symbols, and their results are new."""

_NO_EFFECT = frozenset(
    {
        "aten::_assert_tensor_metadata",
        "aten::_assert_async",
        "aten::_assert_scalar",
        "aten::sym_constrain_range",
        "aten::sym_constrain_range_for_size",
    }
)
"""Guards that torch.export wrote; the dispatch checks the same."""


@dataclass(frozen=True)
class Replacement:
    """Nodes of one call site that a kernel replaces."""

    site: str
    kernel: str
    nodes: tuple[Node, ...]
    inputs: tuple[Node, ...]
    outputs: tuple[Node, ...]

    @property
    def is_tuple(self) -> bool:
        """True if the kernel returns a tuple."""
        return len(self.outputs) != 1


@dataclass
class Step:
    """One statement of the stitched forward: an operator of the graph, or a region's kernel."""

    position: int
    node: Node | None = None
    region: Replacement | None = None
    inputs: tuple[Node, ...] = ()
    outputs: tuple[Node, ...] = ()
    before: set[int] = field(default_factory=set)
    """Indices of the steps that must come later."""


def is_guard(node: Node) -> bool:
    """True for an assertion that export wrote."""
    schema = schema_of(node)
    return schema is not None and schema.name in _NO_EFFECT


def written_to(nodes: Sequence[Node]) -> set[Node]:
    """Nodes whose memory an operator of the graph writes to, directly or through a view."""
    base = bases(nodes)
    return {base.get(written, written) for node in nodes for written in mutated(node)}


def bases(nodes: Sequence[Node]) -> dict[Node, Node]:
    """For each node, the node whose storage its result may share (itself if its storage is new)."""
    base: dict[Node, Node] = {}
    for node in nodes:
        source: Any = None
        schema = schema_of(node)
        if schema is None:  # getitem: an element of a list of views, or of new results
            parent = node.args[0] if node.op == "call_function" and node.args else None
            source = _shared(parent, node.args[1:]) or parent if isinstance(parent, Node) else None
        elif any(r.alias_info is not None for r in schema.returns):
            source = next(
                (a for s, a in arguments(node) if s.alias_info is not None and isinstance(a, Node)),
                None,
            )
        else:
            source = _shared(node)
        base[node] = base.get(source, source) if isinstance(source, Node) else node
    return base


def _shared(node: Node, index: tuple[Any, ...] = ()) -> Node | None:
    """The input whose memory the result, or an element of it, shares; None if fake tensors tell of none.

    Schemas do not tell about all: `dropout` and `type_as` may return an input, `einsum` and `meshgrid` views.
    """
    if "af_shares" not in node.meta:  # running a node takes about a millisecond
        node.meta["af_shares"] = _shares(node)
    places: list[int | None] = node.meta["af_shares"]
    chosen = places[index[0] :][:1] if index and isinstance(index[0], int) else places
    place = next((p for p in chosen if p is not None), None)
    return None if place is None else node.all_input_nodes[place]


def _shares(node: Node) -> list[int | None]:
    """For each element of the result, which of the node's inputs shares its memory."""
    schema = schema_of(node)
    if schema is None or not schema.returns or not _NEW_MEMORY.isdisjoint(node.target.tags):
        return []
    try:
        made = run_fake(node)
        inputs = [storages(source.meta.get("val")) for source in node.all_input_nodes]
        found = [storages(value) for value in (made if isinstance(made, (list, tuple)) else [made])]
    except Exception:  # it has no tensors, or fake ones cannot run it
        return []
    return [next((i for i, given in enumerate(inputs) if memory & given), None) for memory in found]


def hazard(region: Replacement, nodes: Sequence[Node], base: Mapping[Node, Node]) -> str:
    """Why a kernel without side effects cannot replace the region; empty if it can.

    A region may write in place to its own intermediates, or to a value that is not read afterwards.
    """
    inside = set(region.nodes)
    order = {node: i for i, node in enumerate(nodes)}
    for writer in region.nodes:
        for target in mutated(writer):
            root = base[target]
            if root.op in ("placeholder", "get_attr"):
                return f"it writes to {root.name} in place"
            sharing = [n for n in nodes if base[n] is root]
            for alias in sharing:
                stale = alias in region.outputs and order[alias] < order[writer]
                read_later = any(u not in inside and order[u] > order[writer] for u in alias.users)
                if stale or (read_later and alias not in inside):
                    return f"{writer.name} writes in place to {alias.name}, which is read elsewhere"
    return ""


def schedule(
    nodes: Sequence[Node], regions: Sequence[Replacement]
) -> tuple[list[Step], list[tuple[Replacement, str]]]:
    """Order the graph's operators with each region as one step.

    Args:
        regions: disjoint regions.

    Returns:
        The steps in order, without dead ones, and the regions that were left out, with the reason.
    """
    base = bases(nodes)
    refused: list[tuple[Replacement, str]] = []
    kept: list[Replacement] = []
    for region in regions:
        reason = hazard(region, nodes, base)
        if reason:
            refused.append((region, reason))
        else:
            kept.append(region)
    while True:
        steps = _steps(nodes, kept)
        _add_order(steps, nodes, base)
        ordered = _sort(steps)
        if len(ordered) == len(steps):
            return alive(ordered, nodes), refused
        done = {id(step) for step in ordered}
        culprit = next(s.region for s in steps if s.region is not None and id(s) not in done)
        kept.remove(culprit)
        refused.append((culprit, "an operator between its nodes depends on it and feeds it"))


def needs(steps: Sequence[Step]) -> list[frozenset[int]]:
    """Earlier steps that must finish before each step, on any GPU stream.

    Writes, random numbers, unknown operators and accesses to another device's memory keep their place among
    all steps.
    """
    made: dict[Node, int] = {}
    entered: dict[str, int] = {}
    fence = -1
    found: list[frozenset[int]] = []
    for index, step in enumerate(steps):
        if _stays(step):
            found.append(frozenset(range(max(fence, 0), index)))
            fence = index
        else:
            needed = {made[node] for node in step.inputs if node in made}
            if step.region is not None and step.region.kernel in entered:
                needed.add(entered[step.region.kernel])
            if fence >= 0:
                needed.add(fence)
            found.append(frozenset(needed))
        if step.region is not None:
            entered[step.region.kernel] = index
        made.update(dict.fromkeys(step.outputs, index))
    return found


def _stays(step: Step) -> bool:
    if step.node is not None and kind_of(step.node) is Kind.OPAQUE:
        return True
    leaves = _pytree.tree_leaves([node.meta.get("val") for node in (*step.inputs, *step.outputs)])
    tensors = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]
    # The launch passes a CPU scalar by value.
    return len({t.device for t in tensors if t.ndim or t.device.type != "cpu"}) > 1


def _steps(nodes: Sequence[Node], regions: Sequence[Replacement]) -> list[Step]:
    """One step per region, at the place of its last node, and one per other operator."""
    owner = {node: region for region in regions for node in region.nodes}
    steps: list[Step] = []
    for position, node in enumerate(nodes):
        if node.op in ("placeholder", "output", "get_attr") or is_guard(node):
            continue
        region = owner.get(node)
        if region is None:
            steps.append(Step(position, node=node, inputs=tuple(node.all_input_nodes), outputs=(node,)))
        elif node is region.nodes[-1]:
            steps.append(Step(position, region=region, inputs=region.inputs, outputs=region.outputs))
    return steps


def _add_order(steps: list[Step], nodes: Sequence[Node], base: Mapping[Node, Node]) -> None:
    """Fill `Step.before`: producers before consumers, and readers on their side of each write."""
    index: dict[Node, int] = {}
    for i, step in enumerate(steps):
        for node in step.region.nodes if step.region else (step.node,):
            if node is not None:
                index[node] = i
    for i, step in enumerate(steps):
        for source in step.inputs:
            if source in index and index[source] != i:
                steps[index[source]].before.add(i)
    position = {node: i for i, node in enumerate(nodes)}
    for writer in nodes:
        for target in mutated(writer):
            root = base[target]
            for alias in (n for n in nodes if base[n] is root):
                for user in (alias, *alias.users):
                    if user in index and writer in index and index[user] != index[writer]:
                        first, last = sorted((user, writer), key=position.__getitem__)
                        steps[index[first]].before.add(index[last])


def _sort(steps: list[Step]) -> list[Step]:
    """Kahn's topological order, earliest position first; incomplete if there is a cycle."""
    waiting = [0] * len(steps)
    for step in steps:
        for later in step.before:
            waiting[later] += 1
    ready = [(step.position, i) for i, step in enumerate(steps) if waiting[i] == 0]
    heapq.heapify(ready)
    ordered: list[Step] = []
    while ready:
        _, i = heapq.heappop(ready)
        ordered.append(steps[i])
        for later in steps[i].before:
            waiting[later] -= 1
            if waiting[later] == 0:
                heapq.heappush(ready, (steps[later].position, later))
    return ordered


def alive(steps: list[Step], nodes: Sequence[Node]) -> list[Step]:
    """Steps whose results are used or that write to something."""
    needed: set[Node] = set()
    for node in nodes:
        if node.op == "output":
            needed.update(node.all_input_nodes)
    alive: list[Step] = []
    for step in reversed(steps):
        writes = step.node is not None and bool(mutated(step.node))
        if writes or any(node in needed for node in step.outputs):
            needed.update(step.inputs)
            alive.append(step)
    return alive[::-1]
