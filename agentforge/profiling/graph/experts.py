"""Join the experts of a mixture: two grouped products and what lies between them become one region.

A grouped product multiplies each group of rows with a matrix of its own. transformers sorts the rows by
expert and keeps where each expert's rows end in a tensor, so that the region takes its routing as an input.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from torch.fx import Node

from .attention import only_reader, views_between
from .operators import Kind, argument, kind_of, op_name, value_of
from .region import Region, region_of

_LONGEST = 4
"""Most regions in one mixture: a product, biases, the activation, a product."""
_GROUPED = frozenset({"_grouped_mm", "grouped_mm_fallback"})


class GroupedProduct(NamedTuple):
    """Rows `[S, K]`, weights `[G, K, N]`, and the row before which each group ends, `[G]`."""

    rows: Node
    weights: Node
    ends: Node


def grouped_product(node: Node) -> GroupedProduct | None:
    """The grouped product that an operator computes; None if it computes another one."""
    if node.op != "call_function" or op_name(node) not in _GROUPED:
        return None
    names = ("input", "weight") if op_name(node) == "grouped_mm_fallback" else ("self", "mat2")
    rows, weights, ends = (argument(node, name) for name in (*names, "offs"))
    if argument(node, "bias") is not None or argument(node, "out_dtype") is not None:
        return None
    if not all(_dimensions(value) == n for value, n in ((rows, 2), (weights, 3), (ends, 1))):
        return None
    return GroupedProduct(rows, weights, ends)


def _dimensions(node: Any) -> int | None:
    value = value_of(node) if isinstance(node, Node) else None
    return None if value is None else value.ndim


def join_experts(regions: Sequence[Region], order: Mapping[Node, int]) -> tuple[Region, ...]:
    """Merge each chain of two products with the same groups whose intermediate values have no other reader.

    Returns:
        The regions, in topological order of their last node.
    """
    owner = {node: region for region in regions for node in region.nodes}
    joined = list(regions)
    for region in regions:
        parts = _chain(region, owner)
        if not parts:
            continue
        nodes = {n for part in parts for n in part.nodes} | views_between(parts)
        nodes |= {n for part in (parts[0], parts[-1]) for n in _views_of_weights(part.nodes[0])}
        joined = [r for r in joined if r not in parts]
        joined.append(replace(region_of(nodes, order), op_type="experts", vendor=False))
    return tuple(sorted(joined, key=lambda r: order[r.nodes[-1]]))


def _chain(first: Region, owner: Mapping[Node, Region]) -> list[Region]:
    """The regions from a grouped product to the next one with the same groups; empty if there is none."""
    product = grouped_product(first.nodes[0])
    parts = [first]
    while product is not None and len(parts) < _LONGEST and len(parts[-1].outputs) == 1:
        reader = only_reader(parts[-1].outputs[0], owner)
        if reader is None:
            break
        parts.append(reader)
        second = grouped_product(reader.nodes[0])
        if second is not None:
            return parts if second.ends is product.ends else []
        if reader.vendor or any(kind_of(n) is Kind.OPAQUE for n in reader.nodes):
            break
    return []


def _views_of_weights(node: Node) -> Iterator[Node]:
    """The views through which a grouped product reads its weights, so that the region takes the weights."""
    product = grouped_product(node)
    view = product.weights if product else node
    while kind_of(view) is Kind.VIEW and len(view.users) == 1 and view.all_input_nodes:
        yield view
        view = view.all_input_nodes[0]
