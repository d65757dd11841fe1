"""The policy `best-first`: a small beam of the best attempts against a fresh start."""

from __future__ import annotations

from heapq import nlargest
from typing import ClassVar

from pydantic import Field

from agentforge.schema import FrozenModel

from ._base import Choice, Node, Tree
from .repairs import newest_repairable
from .reward import BASELINE


class BestFirst(FrozenModel):
    """Greedy, with a small beam.

    A failure that the judge can repair comes first. Then the best passed attempts compete with a fresh
    start, each discounted by the attempts already made from it.
    """

    name: ClassVar[str] = "best-first"
    beam: int = Field(default=3, ge=1)
    """Best passed attempts, which may be built upon."""
    repairs: int = Field(default=2, ge=1)
    """Repairs in a row before a line of attempts is given up."""
    children: int = Field(default=3, ge=1)
    """Attempts built on one passed attempt before it is given up."""
    starts: int = Field(default=2, ge=1)
    """Different starts from the definition before anything is built upon."""
    restarts: int | None = Field(default=None, ge=0)
    """Starts from the definition after an attempt passed; None is no limit."""

    def select(self, tree: Tree) -> Choice | None:
        """A failure to repair, a start from the definition, or the parent to build on."""
        broken = newest_repairable(tree, self.repairs)
        if broken is not None:
            return Choice(tree.bottleneck, broken.id)
        starts = sum(node.parent is None for node in tree.nodes)
        if starts < self.starts:
            return Choice(tree.bottleneck, None)
        best = max(self._beam(tree), key=_promise, default=None)
        again = self._may_restart(tree)
        if best is None:
            return Choice(tree.bottleneck, None) if again else None
        fresh = again and _promise(best) < 1.0 / (1 + starts)
        return Choice(tree.bottleneck, None if fresh else best.id)

    def _may_restart(self, tree: Tree) -> bool:
        """Whether another start from the definition is allowed."""
        first = next((i for i, node in enumerate(tree.nodes) if node.passed), None)
        if self.restarts is None or first is None:
            return True
        return sum(node.parent is None for node in tree.nodes[first + 1 :]) < self.restarts

    def _beam(self, tree: Tree) -> list[Node]:
        buildable = (n for n in tree.nodes if n.buildable)
        best = nlargest(self.beam, buildable, key=lambda n: (n.reward, n.speedup or 0.0))
        return [n for n in best if n.children < self.children]


def _promise(node: Node) -> float:
    """Reward as a multiple of a baseline's, discounted by what was already built on it."""
    return node.reward / BASELINE / (1 + node.children)
