"""Compute what depends on weights and constants alone once, not in each forward."""

from __future__ import annotations

from agentforge.stitch.graph.derived import DERIVE, FOLD, frontier

from .unit_graph import UnitGraph


class FoldConstants:
    """Position tables, masks, normalised weights: every value that no input reaches."""

    def apply(self, unit: UnitGraph) -> int:
        """See `MoveRewrite.apply`."""
        nodes = list(unit.graph.nodes)
        found = [node for node in frontier(nodes, unit.free) if DERIVE not in node.meta]
        for node in found:
            node.meta[FOLD] = True
        return len(found)
