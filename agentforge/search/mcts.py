"""The policy `mcts`: Monte Carlo tree search over verified attempts (OptiML).

An attempt is both a node and its own rollout: the referee's verdict is the value. Only attempts that passed
are expanded; a failure only by its repair.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from operator import add
from typing import ClassVar, Literal

from pydantic import Field

from agentforge.schema import FrozenModel

from ._base import Choice, Node, Tree
from .repairs import newest_repairable
from .reward import BASELINE

PESSIMISM = 0.1
"""Reward below its parent's with which an attempt under way, or not begun, is reckoned: a virtual loss."""

TEMPERATURE = 0.1
"""Of the softmax over the strategies' expected gains, in log speedup."""

EVEN = 0.25
"""Share of the prior that is even. Without it, expectations a few temperatures apart are a certainty, and a
second strategy is never begun."""

Rule = Literal["puct", "uct"]


class _Values:
    """Of each subtree: visits, sum and best of rewards, and whether anything in it may be built upon.

    Lists by place: 0 is the definition, i + 1 the attempt i. A failure and its repairs are one visit. An
    attempt under way is a visit with a low reward. A solution that was written before is not built upon.
    """

    def __init__(self, nodes: Sequence[Node]) -> None:
        places: dict[str | None, int] = {node.id: place for place, node in enumerate(nodes, start=1)}
        self.parents = [0, *[places.get(node.parent, 0) for node in nodes]]
        self.visits = [0] * len(self.parents)
        self.totals = [0.0, *[node.reward if node.finished else 0.0 for node in nodes]]
        self.open = [True] + [False] * len(nodes)
        written: set[str] = set()
        for place, node in enumerate(nodes, start=1):
            if not node.finished:
                parent = self.parents[place]
                above = nodes[parent - 1].reward if parent and nodes[parent - 1].passed else BASELINE
                self.totals[place] = max(0.0, above - PESSIMISM)
            elif node.verdict == "optimize":
                self.open[place] = node.buildable and node.solution not in written
            if node.solution:
                written.add(node.solution)
        self.best = list(self.totals)
        self._first, self._next = [0] * len(self.parents), [0] * len(self.parents)
        self._add_up(nodes)

    def children(self, place: int) -> list[int]:
        """In the order of their numbers."""
        found, place = [], self._first[place]
        while place:
            found.append(place)
            place = self._next[place]
        return found

    def _add_up(self, nodes: Sequence[Node]) -> None:
        visits, totals, best, opened = self.visits, self.totals, self.best, self.open
        for place in range(len(nodes), 0, -1):
            parent = self.parents[place]
            self._next[place], self._first[parent] = self._first[parent], place
            if not visits[place] or nodes[place - 1].passed:
                visits[place] += 1
            else:  # its repair counts instead
                totals[place] -= nodes[place - 1].reward
            visits[parent] += visits[place]
            totals[parent] += totals[place]
            if best[place] > best[parent]:
                best[parent] = best[place]
            if opened[place]:
                opened[parent] = True

    def q(self, place: int) -> float:
        """Half mean, half maximum: the search is for the best attempt, not for a good average."""
        return 0.5 * self.totals[place] / self.visits[place] + 0.5 * self.best[place]


class MCTS(FrozenModel):
    """Descends from the definition by UCT or PUCT to the attempt that gets the next child."""

    name: ClassVar[str] = "mcts"
    rule: Rule = "puct"
    """`puct` weighs by the knowledge base's expectation of a start's strategy; `uct` by visits alone."""
    exploration: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    """Weight of what was visited little; None is 1.4 for `puct` and 0.7 for `uct`."""
    widening: float = Field(default=0.5, gt=0, le=1)
    """A node with n visits may have `n ** widening` children, rounded up."""
    repairs: int = Field(default=2, ge=1)
    """Repairs in a row before a line of attempts is given up."""

    @property
    def weight(self) -> float:
        """`exploration`, or its default for the rule."""
        return self.exploration if self.exploration is not None else {"puct": 1.4, "uct": 0.7}[self.rule]

    def select(self, tree: Tree) -> Choice | None:
        """A failure to repair, else the attempt, or the definition, that the descent ends at."""
        broken = newest_repairable(tree, self.repairs)
        if broken is not None:
            return Choice(tree.bottleneck, broken.id)
        values, at = _Values(tree.nodes), 0
        while below := values.children(at):
            down = [place for place in below if values.open[place]]
            if not down:
                break
            if at:
                fresh = 1.0 / (1 + len(below))
                chances = [fresh] * len(down)
            else:
                chances, fresh = self._priors(tree, down, below)
            best, score = self._best(values, at, down, chances)
            if at == 0 or tree.nodes[at - 1].buildable:
                wide = len(below) >= math.ceil(values.visits[at] ** self.widening)
                if not wide and self._fresh_score(values, at, fresh) >= score:
                    break
            at = best
        return Choice(tree.bottleneck, tree.nodes[at - 1].id if at else None)

    def _best(
        self, values: _Values, at: int, places: Sequence[int], chances: Sequence[float]
    ) -> tuple[int, float]:
        """The child with the highest score and its score: UCT (Kocsis and Szepesvari, 2006) or PUCT (Silver
        et al., 2017)."""
        visits, total, best = values.visits, values.totals, values.best
        values_of = [0.5 * total[place] / visits[place] + 0.5 * best[place] for place in places]
        if self.rule == "uct":
            spread = self.weight * math.sqrt(math.log(visits[at]))
            extra = [spread / math.sqrt(visits[place]) for place in places]
        else:
            spread = self.weight * math.sqrt(visits[at])
            extra = [spread * c / (1 + visits[place]) for place, c in zip(places, chances, strict=True)]
        scores = list(map(add, values_of, extra))
        top = max(scores)
        return places[scores.index(top)], top

    def _fresh_score(self, values: _Values, at: int, chance: float) -> float:
        """Of an attempt that was not begun."""
        if self.rule == "uct":
            return math.inf
        return values.q(at) - PESSIMISM + self.weight * chance * math.sqrt(values.visits[at])

    def _priors(self, tree: Tree, down: Sequence[int], below: Sequence[int]) -> tuple[list[float], float]:
        """Chances of the starts `down`, and of one more: it gets the best strategy that was not tried.

        A softmax over what the knowledge base expected of the strategies, mixed with an even chance; even if
        it knows none.
        """
        even = 1.0 / (1 + len(below))
        if not tree.strategies:
            return [even] * len(down), even
        gains = {**dict(tree.strategies), "": 0.0}  # "" is any strategy that it does not know
        top = max(gains.values())
        weights = {name: math.exp((gain - top) / TEMPERATURE) for name, gain in gains.items()}
        total = sum(weights.values())

        def mixed(weight: float) -> float:
            return (1.0 - EVEN) * weight / total + EVEN * even

        tried = {tree.nodes[place - 1].strategy for place in below}
        fresh = max(weight for name, weight in weights.items() if name not in tried or not name)
        known = [weights.get(tree.nodes[place - 1].strategy, weights[""]) for place in down]
        return [mixed(weight) for weight in known], mixed(fresh)
