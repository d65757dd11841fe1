"""Search level by level, which `beam` and `best-of` share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from heapq import nlargest
from itertools import islice

from ._base import Choice, Node, Tree
from .repairs import newest_repairable, without_repairs


def select_by_levels(
    tree: Tree, *, starts: int, beam: int, children: int, idle: int, levels: int | None, repairs: int
) -> Choice | None:
    """The next attempt of the level under way; None while the level waits, and after the last one.

    A level has `starts` starts until an attempt passed. Every later level has `children` attempts on each of
    the best `beam` attempts so far. The levels are read off the attempts in the order of their numbers. An
    attempt that the planner moved to another parent fills its place.

    Args:
        idle: levels in a row without a better reward before the search ends.
        levels: most levels; None is no limit.
        repairs: repairs in a row; they belong to the attempt that they repair.
    """
    broken = newest_repairable(tree, repairs)
    if broken is not None:
        return Choice(tree.bottleneck, broken.id)
    attempts, best, top, without, level = _attempts(tree), 0.0, list[Node](), 0, 0
    while without < idle and (levels is None or level < levels):
        parents: list[str | None] = [node.id for node in top] or [None]
        share = children if top else starts
        made = list(islice(attempts, share * len(parents)))
        if len(made) < share * len(parents):
            begun = Counter(first.parent for first, _ in made)
            return Choice(tree.bottleneck, next(p for p in parents if begun[p] < share))
        outcomes = [last for _, last in made]
        if not all(node.finished for node in outcomes):
            return None
        top = nlargest(beam, [*top, *(n for n in outcomes if n.buildable)], key=lambda n: n.reward)
        reached = max((n.reward for n in outcomes if n.passed), default=0.0)
        best, without = max(best, reached), 0 if reached > best else without + 1
        level += 1
    return None


def _attempts(tree: Tree) -> Iterator[tuple[Node, Node]]:
    """Each attempt that repairs none, with the last repair of it, or itself."""
    begun = without_repairs(tree)
    own = {node.id for node in begun}
    repair = {node.parent: node for node in tree.nodes if node.id not in own}
    for node in begun:
        last = node
        while last.id in repair:
            last = repair[last.id]
        yield node, last
