"""Join unfused attention: scores, scale and mask, softmax and weighted values become one region.

A fused kernel (Dao et al., FlashAttention, 2022) never stores the score matrix, but only if one region
contains all three steps.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from torch.fx import Node

from .chains import join_chains, only_reader, source_of
from .operators import Kind, kind_of, op_name
from .region import Region

_PRODUCTS = {"matmul", "bmm"}


def join_attention(regions: Sequence[Region], order: Mapping[Node, int]) -> tuple[Region, ...]:
    """Merge each chain of product, softmax and product whose intermediate values have no other reader.

    Returns:
        The regions, in topological order of their last node.
    """
    return join_chains(regions, order, "attention", _chain)


def _chain(softmax: Region, owner: Mapping[Node, Region]) -> Sequence[Region]:
    """The product before, the softmax and the product after; none if they do not form an attention."""
    if softmax.op_type != "softmax" or len(softmax.outputs) != 1:
        return ()
    after = only_reader(softmax.outputs[0], owner)
    makers = {
        owner[source] for n in softmax.inputs if (source := source_of(n)) in owner and _is_product(source)
    }
    makers -= {softmax}
    if after is None or len(makers) != 1 or not _is_product(after.nodes[-1]):
        return ()
    (before,) = makers
    weighted = source_of(after.nodes[-1].args[0])
    if weighted is not softmax.outputs[0] or only_reader(before.nodes[-1], owner) is not softmax:
        return ()
    return before, softmax, after


def _is_product(node: object) -> bool:
    return isinstance(node, Node) and kind_of(node) is Kind.GEMM and op_name(node) in _PRODUCTS
