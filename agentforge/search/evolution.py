"""The policy `evolution`: islands with archives and weighted parents (ShinkaEvolve)."""

from __future__ import annotations

import math
from heapq import nlargest
from statistics import median
from typing import ClassVar

from pydantic import Field

from agentforge.schema import FrozenModel

from ._base import Choice, Node, Tree
from .chance import draw
from .repairs import newest_repairable, without_repairs

SHARPNESS = 10.0
"""Slope of the sigmoid that weighs parents, per median absolute deviation of the rewards (ShinkaEvolve)."""

LEAST_DEVIATION = 1e-3
"""Of rewards: below this the parents count as equally good."""


class Evolution(FrozenModel):
    """Attempts belong to islands in turn; an island picks parents from its archive by chance.

    A parent's weight is `sigmoid(10 (reward - median) / MAD) / (1 + children)`: a good attempt is built upon
    more often, and none forever. A solution that was written before is not in an archive again.
    """

    name: ClassVar[str] = "evolution"
    islands: int = Field(default=2, ge=1, le=1000)
    """Number of populations; attempt i, repairs not counted, belongs to island i modulo this, a repair to its
    parent's."""
    archive: int = Field(default=8, ge=1)
    """Best attempts of an island that can be parents."""
    migration: int = Field(default=10, ge=0)
    """Each time after this many turns an island may build on its neighbour's best; 0 is never."""
    restart: int = Field(default=12, ge=1)
    """Attempts of an island without a new best one before it starts from the definition."""
    repairs: int = Field(default=2, ge=1)
    """Repairs in a row before a line of attempts is given up."""

    def select(self, tree: Tree) -> Choice | None:
        """A failure to repair, else a parent of the island whose turn it is, or a start for it."""
        broken = newest_repairable(tree, self.repairs)
        if broken is not None:
            return Choice(tree.bottleneck, broken.id)
        islands = self._populations(tree)
        turn, island = divmod(len(without_repairs(tree)), self.islands)
        pool = self._archive(islands[island])
        if not pool or self._stuck(islands[island]):
            return Choice(tree.bottleneck, None)
        if self.migration and turn % self.migration == 0 and self.islands > 1:
            pool += self._archive(islands[island - 1])[:1]
        parent = draw(tree, self.name).choices(pool, _weights(pool))[0]
        return Choice(tree.bottleneck, parent.id)

    def _populations(self, tree: Tree) -> list[list[Node]]:
        """The attempts of each island, in the order of their numbers."""
        found: list[list[Node]] = [[] for _ in range(self.islands)]
        turns = {node.id: index % self.islands for index, node in enumerate(without_repairs(tree))}
        for node in tree.nodes:
            island = turns.setdefault(node.id, turns.get(node.parent or "", 0))
            found[island].append(node)
        return found

    def _archive(self, population: list[Node]) -> list[Node]:
        """The best attempts with different solutions, best first."""
        distinct: dict[str, Node] = {}
        for node in population:
            if node.buildable:
                distinct.setdefault(node.solution or node.id, node)
        return nlargest(self.archive, distinct.values(), key=lambda n: n.reward)

    def _stuck(self, population: list[Node]) -> bool:
        """Whether its last attempts brought no new best one, counted from the last start."""
        best, since = -1.0, 0
        for node in population:
            better = node.passed and node.reward > best
            best = max(best, node.reward) if node.passed else best
            since = 0 if better or node.parent is None else since + 1
        return since >= self.restart


def _weights(pool: list[Node]) -> list[float]:
    """How likely each is to be the parent."""
    middle = median(n.reward for n in pool)
    deviation = max(LEAST_DEVIATION, median(abs(n.reward - middle) for n in pool))
    return [_sigmoid(SHARPNESS * (n.reward - middle) / deviation) / (1 + n.children) for n in pool]


def _sigmoid(x: float) -> float:
    return 1.0 / (1.0 + math.exp(-min(50.0, max(-50.0, x))))
