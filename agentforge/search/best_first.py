"""Best-first: the bottleneck with the most to gain a second, then the most promising parent in its tree.

Which bottleneck is begun next is the plan's to say.
"""

from __future__ import annotations

from collections.abc import Sequence

from ._base import Choice, Node, Tree

DIMINISHING = 0.4
"""What each attempt that passed leaves of the gain that a further one can be expected to bring: the first
good kernel takes most of it, and tuning takes less and less."""


def expected_gain(tree: Tree) -> float:
    """End-to-end seconds won per second of search: `(time - reachable) x P(success) / cost`, diminishing.

    Dividing by the target's time, the same for all trees, turns it into Amdahl's
    `share x (1 - 1/expected speedup) x P(success) / cost`.
    """
    passed = sum(node.passed for node in tree.nodes)
    left = max(0.0, tree.time_s - tree.reachable_s) * DIMINISHING**passed
    return left * tree.success / tree.cost_s


class BestFirst:
    """Greedy over bottlenecks, a small beam within each tree.

    In the chosen tree a failure that the judge says can be mended comes first, because a repair is the
    cheapest attempt there is; then the best passed attempts compete with a fresh start from the
    definition, each discounted by the attempts already made from it.

    Args:
        beam: passed attempts of a tree, fastest first, that may be built upon.
        repairs: repairs in a row before a line of attempts is given up.
        children: attempts built on one passed attempt before it is given up.
        starts: different starts from the definition before anything is built upon.
    """

    name = "best-first"

    def __init__(self, *, beam: int = 3, repairs: int = 2, children: int = 3, starts: int = 2) -> None:
        if min(beam, repairs, children, starts) < 1:
            raise ValueError("beam, repairs, children and starts are at least 1")
        self.beam = beam
        self.repairs = repairs
        self.children = children
        self.starts = starts

    def select(self, trees: Sequence[Tree]) -> Choice | None:
        """The tree with the largest expected gain a second, and the parent in it.

        Where that tree has no attempt yet, the first one of those without is begun.
        """
        open_trees = [tree for tree in trees if not tree.exhausted and expected_gain(tree) > 0]
        if not open_trees:
            return None
        tree = max(open_trees, key=expected_gain)
        if not tree.nodes:
            tree = next(tree for tree in open_trees if not tree.nodes)
        return Choice(tree.bottleneck, self._parent(tree))

    def _parent(self, tree: Tree) -> str | None:
        by_id = {node.id: node for node in tree.nodes}
        mendable = [n for n in tree.nodes if self._mendable(n, by_id)]
        if mendable:
            return mendable[-1].id
        starts = sum(node.parent is None for node in tree.nodes)
        if starts < self.starts:
            return None
        best = max(self._beam(tree), key=_promise, default=None)
        if best is None or _promise(best) < 1.0 / (1 + starts):
            return None
        return best.id

    def _beam(self, tree: Tree) -> list[Node]:
        passed = [n for n in tree.nodes if n.finished and n.passed and n.verdict == "optimize"]
        fastest = sorted(passed, key=lambda n: -(n.speedup or 0.0))[: self.beam]
        return [n for n in fastest if n.children < self.children]

    def _mendable(self, node: Node, by_id: dict[str, Node]) -> bool:
        """A judged failure to repair, not yet tried, at the end of a short enough chain of failures."""
        if not node.finished or node.verdict != "repair" or node.children:
            return False
        failures, cursor = 0, node
        while cursor.verdict == "repair":
            failures += 1
            if failures > self.repairs:
                return False
            if cursor.parent is None or cursor.parent not in by_id:
                break
            cursor = by_id[cursor.parent]
        return True


def _promise(node: Node) -> float:
    """Speedup over the best baseline, discounted by what was already built on it."""
    return (node.speedup or 0.0) / (1 + node.children)
