"""The policy `map-elites`: the best attempt of each cell of a map of machine code (KernelFoundry)."""

from __future__ import annotations

from collections import Counter
from typing import ClassVar

from pydantic import Field

from agentforge.schema import FrozenModel

from ._base import Choice, Node, Tree
from .cells import Cell, neighbours
from .chance import draw
from .repairs import newest_repairable, without_repairs


class MapElites(FrozenModel):
    """Builds on the best attempts of different cells, and at times asks for a cell that is empty.

    A cell (`search/cells.py`) is measured from machine code. Its elite is its attempt with the highest
    reward that may be built upon. An elite's weight as a parent is `reward / (1 + children)`.
    """

    name: ClassVar[str] = "map-elites"
    starts: int = Field(default=2, ge=1)
    """Attempts from the definition before anything is built upon."""
    targets: float = Field(default=0.2, ge=0, le=1)
    """Probability that the parent is the elite with the most empty neighbours, and that one of these
    neighbours is the attempt's target."""
    any: float = Field(default=0.1, ge=0, le=1)
    """Probability that the parent is any attempt that may be built upon."""
    asks: int = Field(default=2, ge=1)
    """Attempts with the same target, without their repairs, before it is not asked for again."""
    restart: int = Field(default=12, ge=1)
    """Attempts without a new elite before a start from the definition."""
    repairs: int = Field(default=2, ge=1)
    """Repairs in a row before a line of attempts is given up."""

    def select(self, tree: Tree) -> Choice | None:
        """A failure to repair, a start, or a parent from the map and perhaps a target for its child."""
        broken = newest_repairable(tree, self.repairs)
        if broken is not None:
            return Choice(tree.bottleneck, broken.id, broken.target)
        elites, since = self._map(tree)
        starts = sum(node.parent is None for node in tree.nodes)
        if not elites or starts < self.starts or since >= self.restart:
            return Choice(tree.bottleneck, None)
        chance = draw(tree, self.name)
        kind = chance.random()
        if kind < self.targets:
            parent, empty = self._frontier(tree, elites)
            if parent is not None:
                return Choice(tree.bottleneck, parent.id, chance.choice(empty))
        pool = list(elites.values())
        if self.targets <= kind < self.targets + self.any:
            pool = [node for node in tree.nodes if node.buildable]
            return Choice(tree.bottleneck, chance.choice(pool).id)
        weights = [(1e-9 + node.reward) / (1 + node.children) for node in pool]
        return Choice(tree.bottleneck, chance.choices(pool, weights)[0].id)

    def _map(self, tree: Tree) -> tuple[dict[Cell, Node], int]:
        """The elite of each cell, and the attempts since the last new elite or start."""
        elites: dict[Cell, Node] = {}
        since = 0
        for node in tree.nodes:
            since = 0 if node.parent is None else since + 1
            if node.buildable:
                best = elites.get(node.cell)
                if best is None or node.reward > best.reward:
                    elites[node.cell] = node
                    since = 0
        return elites, since

    def _frontier(self, tree: Tree, elites: dict[Cell, Node]) -> tuple[Node | None, list[Cell]]:
        """The elite with the most empty neighbours that may be asked for, the best one of equals."""
        taken = {node.cell for node in tree.nodes if node.passed}
        asked = Counter(node.target for node in without_repairs(tree) if node.target)
        best: tuple[Node | None, list[Cell]] = (None, [])
        for node in elites.values():
            empty = [
                c for c in neighbours(node.cell, tree.highest) if c not in taken and asked[c] < self.asks
            ]
            before, found = best
            if empty and (
                before is None or (len(empty), node.reward) > (len(found), before.reward)
            ):  # fmt: skip
                best = node, empty
        return best
