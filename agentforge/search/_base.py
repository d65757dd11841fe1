"""The two halves of a search decision: a tree policy picks the parent, an allocator the bottleneck."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from agentforge.registry import Registry


@dataclass(frozen=True)
class Node:
    """What a policy sees of an attempt."""

    id: str
    parent: str | None
    passed: bool
    finished: bool
    """Evaluated and judged."""
    speedup: float | None
    """Point estimate over the best baseline; None unless passed."""
    verdict: str
    """The critique's kind: `repair`, `optimize`, `accept`, `abandon`; empty before judgement. The supervisor
    sets `abandon` if the evaluation is CHEATING or much slower than its parent's."""
    children: int
    reward: float = 0.0
    """Of a finished attempt, 0 to 1 (`search/reward.py`)."""
    strategy: str = ""
    """Identifier of its plan's strategy."""
    solution: str = ""
    """Hash; empty if it has none."""
    cell: tuple[int, ...] = ()
    """What was measured of its machine code (`search/cells.py`); empty unless it passed."""
    target: tuple[int, ...] = ()
    """The cell that it was asked for; empty if for none."""

    @property
    def buildable(self) -> bool:
        """Whether a policy may build on it: it passed, and its judge sees room for more."""
        return self.finished and self.passed and self.verdict == "optimize"


@dataclass(frozen=True)
class Tree:
    """The attempts at one bottleneck and the gain that is possible there."""

    bottleneck: str
    """Hash of its definition."""
    time_s: float
    """Seconds in one forward now, after promotions."""
    reachable_s: float
    """Seconds that a good kernel can be expected to reach, not below the speed of light."""
    success: float
    """Probability that one more attempt gains, from the knowledge base and from this run, 0 to 1."""
    cost_s: float
    """Expected seconds of one more attempt; above 0."""
    nodes: tuple[Node, ...]
    """In the order of their numbers: a parent comes before its children."""
    exhausted: bool = False
    """No attempt is wanted here: the planner has nothing left, patience ran out, or the speed of light
    is near."""
    seed: str = ""
    """Run and definition: where a policy's chance begins (`search/chance.py`)."""
    strategies: tuple[tuple[str, float], ...] = ()
    """Applicable strategies with the gain in log speedup that the knowledge base expected of each before
    the run, best first."""
    highest: tuple[int, ...] = ()
    """Level of each dimension that machine code can have here (`search/cells.py`); empty if all."""

    @property
    def closed(self) -> bool:
        """Whether no attempt is wanted, or nothing is left to gain."""
        return self.exhausted or self.time_s <= self.reachable_s


@dataclass(frozen=True)
class Choice:
    """What to work on: a bottleneck and the attempt to build on (None starts from the definition)."""

    bottleneck: str
    parent: str | None
    target: tuple[int, ...] = ()
    """The cell that the proposer is asked for; empty if for none."""


@dataclass(frozen=True)
class Offer:
    """A tree and what the tree policy would do in it next."""

    tree: Tree
    choice: Choice

    @property
    def repair(self) -> bool:
        """Whether it repairs a failure."""
        parent = self.choice.parent
        return parent is not None and any(n.id == parent and not n.passed for n in self.tree.nodes)


class TreePolicy(Protocol):
    """Which parent to build on within one tree.

    A pure function of the tree, so that a resumed run decides as the interrupted one would have. Chance
    comes from `search.draw`, never from a generator that is carried from one decision to the next.
    """

    @property
    def name(self) -> str:
        """As registered."""
        ...

    def select(self, tree: Tree) -> Choice | None:
        """The next choice in a tree that is not closed; None if the policy wants no further attempt, or
        waits for those under way (`finished` is False)."""
        ...


class Allocator(Protocol):
    """Which bottleneck gets the next attempt. A pure function of the offers."""

    name: str

    def pick(self, offers: Sequence[Offer]) -> Offer | None:
        """One of the offers, which are in the order of the model's plan; None if none is worth an attempt."""
        ...


def next_choice(trees: Sequence[Tree], allocator: Allocator, policy: TreePolicy) -> Choice | None:
    """The next attempt over all trees; None if nothing is worth one."""
    chosen = [(tree, policy.select(tree)) for tree in trees if not tree.closed]
    picked = allocator.pick([Offer(tree, choice) for tree, choice in chosen if choice is not None])
    return picked.choice if picked else None


policies: Registry[TreePolicy] = Registry(
    "policies",
    {
        "best-first": "agentforge.search.best_first:BestFirst",
        "iterative": "agentforge.search.iterative:Iterative",
        "best-of": "agentforge.search.best_of:BestOf",
        "beam": "agentforge.search.beam:Beam",
        "mcts": "agentforge.search.mcts:MCTS",
        "evolution": "agentforge.search.evolution:Evolution",
        "map-elites": "agentforge.search.map_elites:MapElites",
    },
)
allocators: Registry[Allocator] = Registry(
    "allocators", {"gain-per-cost": "agentforge.search.gain_per_cost:GainPerCost"}
)
