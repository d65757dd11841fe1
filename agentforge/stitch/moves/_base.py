"""What a move is, and what carries moves out on a captured unit."""

from __future__ import annotations

import copy
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Protocol

from torch.fx import GraphModule

from agentforge.profiling.graph.capture import CapturedUnit
from agentforge.schema import MoveKind

from .channels_last import ChannelsLast
from .fold_batch_norm import FoldBatchNorm
from .fold_constants import FoldConstants
from .fuse_epilogues import FuseEpilogues
from .merge_products import MergeProducts
from .unit_graph import UnitGraph


class MoveRewrite(Protocol):
    """Rewrites the graph of a unit so that it computes the same from the same weights."""

    def apply(self, unit: UnitGraph) -> int:
        """Rewrite in place. Operators of kernels and operators that write to memory stay as they are.

        Returns:
            Number of places that were rewritten.
        """
        ...


MOVES: Mapping[MoveKind, MoveRewrite] = {
    MoveKind.FOLD_BATCH_NORM: FoldBatchNorm(),
    MoveKind.MERGE_PRODUCTS: MergeProducts(),
    MoveKind.CHANNELS_LAST: ChannelsLast(),
    MoveKind.FUSE_EPILOGUES: FuseEpilogues(),
    MoveKind.FOLD_CONSTANTS: FoldConstants(),
}
"""By kind, in the order of carrying out."""


def carry_out(
    unit: CapturedUnit, kinds: Collection[str], claimed: Collection[str]
) -> tuple[CapturedUnit, dict[str, int]]:
    """A copy of the unit with moves carried out.

    Args:
        claimed: names of the nodes that kernels compute.

    Returns:
        The copy, and the number of places of each move that found one.
    """
    module = GraphModule(unit.graph_module, copy.deepcopy(unit.graph_module.graph))
    moved = replace(unit, graph_module=module)
    graph = UnitGraph(moved, claimed)
    places = {kind: move.apply(graph) for kind, move in MOVES.items() if kind in kinds}
    return moved, {kind.value: number for kind, number in places.items() if number}
