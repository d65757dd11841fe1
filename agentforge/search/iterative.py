"""The policy `iterative`: one chain of repairs and improvements (CudaForge)."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from agentforge.schema import FrozenModel

from ._base import Choice, Tree
from .repairs import newest_repairable


class Iterative(FrozenModel):
    """Each attempt builds on the one before; after a dead end on the best one, else from the definition."""

    name: ClassVar[str] = "iterative"
    rounds: int = Field(default=10, ge=1)
    """Attempts at a bottleneck, repairs included."""
    build_on: Literal["latest", "best"] = "latest"
    """`best` is the attempt with the highest reward."""
    repairs: int = Field(default=2, ge=1)
    """Repairs in a row before a line of attempts is given up."""

    def select(self, tree: Tree) -> Choice | None:
        """The next link of the chain; None while the last one is under way, and after the last round."""
        if len(tree.nodes) >= self.rounds or not all(node.finished for node in tree.nodes):
            return None
        broken = newest_repairable(tree, self.repairs)
        if broken is not None:
            return Choice(tree.bottleneck, broken.id)
        if tree.nodes and tree.nodes[-1].buildable and self.build_on == "latest":
            return Choice(tree.bottleneck, tree.nodes[-1].id)
        best = max((n for n in tree.nodes if n.buildable), key=lambda n: n.reward, default=None)
        return Choice(tree.bottleneck, best.id if best else None)
