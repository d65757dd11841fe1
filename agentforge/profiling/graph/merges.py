"""Regions that a plan may merge: matrix products with what reads them, and products of one input.

`partition` leaves every product to the vendor's library. One kernel for a product and its activation,
residual or norm saves a pass over memory; one product with joined weights (Q, K and V) saves calls.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from torch.fx import Node

from .chains import only_reader, source_of, views_between
from .operators import Kind, kind_of
from .region import Region, region_of


def merges(regions: Sequence[Region], order: Mapping[Node, int]) -> tuple[Region, ...]:
    """All merges of neighbouring regions of one graph; they may overlap, and a plan chooses among them.

    Args:
        order: position of each node in the graph.
    """
    owner = {node: region for region in regions for node in region.nodes}
    products = [r for r in regions if r.vendor and kind_of(r.nodes[0]) is Kind.GEMM and len(r.outputs) == 1]
    by_reader: dict[Region, list[Region]] = {}
    by_input: dict[object, list[Region]] = {}
    for product in products:
        reader = only_reader(product.outputs[0], owner)
        if reader is not None and not reader.vendor and not _opaque(reader):
            by_reader.setdefault(reader, [reader]).append(product)
        by_input.setdefault(_activation(product), []).append(product)
    found = [("gemm_epilogue", parts) for parts in by_reader.values()]
    covered = [set(parts) for _, parts in found]
    for parts in by_input.values():
        if len(parts) > 1 and not any(known.issuperset(parts) for known in covered):
            found.append(("gemm", parts))
    joined = [(kind, {n for p in parts for n in p.nodes} | views_between(parts)) for kind, parts in found]
    return tuple(
        replace(region_of(nodes, order), op_type=kind, vendor=False)
        for kind, nodes in joined
        if _convex(nodes, order)
    )


def _activation(product: Region) -> object:
    """The value behind the views of a product's first operand that is no weight."""
    sources = [source_of(node) for node in product.inputs]
    return next((s for s in sources if isinstance(s, Node) and s.op != "get_attr"), sources[0])


def _opaque(region: Region) -> bool:
    return any(kind_of(node) is Kind.OPAQUE for node in region.nodes)


def _convex(nodes: Iterable[Node], order: Mapping[Node, int]) -> bool:
    """True if no path leaves the nodes and comes back: then they can run as one operation."""
    inside = set(nodes)
    last, seen = max(order[n] for n in inside), set[Node]()
    frontier = [user for node in inside for user in node.users if user not in inside]
    while frontier:
        node = frontier.pop()
        if node in inside:
            return False
        if node not in seen and order[node] < last:
            seen.add(node)
            frontier += node.users
    return True
