"""Join the experts of a mixture: two grouped products and what lies between them become one region.

A grouped product multiplies each group of rows with a matrix of its own. transformers sorts the rows by
expert and keeps where each expert's rows end in a tensor, so that the region takes its routing as an input.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from torch.fx import Node

from .chains import join_chains, only_reader
from .operators import Kind, argument, kind_of, op_name, value_of
from .region import Region

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
    return join_chains(regions, order, "experts", _chain, _views_of_weights)


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


def _views_of_weights(parts: Sequence[Region]) -> set[Node]:
    """The views through which both products read their weights, so that the region takes the weights."""
    found = set[Node]()
    for product in filter(None, (grouped_product(part.nodes[0]) for part in (parts[0], parts[-1]))):
        view = product.weights
        while kind_of(view) is Kind.VIEW and len(view.users) == 1 and view.all_input_nodes:
            found.add(view)
            view = view.all_input_nodes[0]
    return found
