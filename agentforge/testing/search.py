"""Contract suites: inherit one, give a class-scoped fixture `policy` or `allocator`, and run pytest."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from hashlib import blake2b
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentforge.search import Allocator, Choice, GainPerCost, Node, Offer, Tree, TreePolicy, next_choice
from agentforge.search.reward import BROKEN, speed_reward

LARGE = 10_000
"""Nodes of a large tree."""

MOST_GROWTH = 10
"""Times as long as a choice in a tree with a quarter of the nodes may take: on every processor, linear work
takes 4 times as long, work for each pair of nodes 16 times. `benchmarks/search/choosing.py` gives seconds."""


def node(
    identifier: str,
    *,
    parent: str | None = None,
    passed: bool = True,
    finished: bool = True,
    speedup: float | None = 1.0,
    verdict: str = "optimize",
    children: int = 0,
    strategy: str = "",
    solution: str | None = None,
    cell: tuple[int, ...] = (),
) -> Node:
    """A node with defaults that suit a test; a failed one has no speedup."""
    own = speedup if passed and finished else None
    reward = BROKEN if own is None else speed_reward(own, 10.0)
    return Node(
        identifier,
        parent,
        passed and finished,
        finished,
        own,
        verdict if finished else "",
        children,
        reward if finished else 0.0,
        strategy,
        identifier if solution is None else solution,
        cell if own is not None else (),
    )


def tree(
    bottleneck: str,
    *nodes: Node,
    time_s: float = 1.0,
    reachable_s: float = 0.5,
    success: float = 0.5,
    cost_s: float = 10.0,
    exhausted: bool = False,
    seed: str = "run",
    strategies: tuple[tuple[str, float], ...] = (),
) -> Tree:
    """A tree with defaults that suit a test."""
    return Tree(bottleneck, time_s, reachable_s, success, cost_s, nodes, exhausted, seed, strategies)


def counted(nodes: Sequence[Node]) -> tuple[Node, ...]:
    """The nodes with the right number of children."""
    children = Counter(n.parent for n in nodes)
    return tuple(replace(n, children=children[n.id]) for n in nodes)


def child_of(grown: Tree, choice: Choice, outcome: Random) -> Node:
    """What an attempt at this choice came to: a third fails, a repair half of the time."""
    parent = next((n for n in grown.nodes if n.id == choice.parent), None)
    failed = outcome.random() < (0.5 if parent is not None and not parent.passed else 0.35)
    base = parent.speedup if parent is not None and parent.speedup else 0.8
    return node(
        f"n{len(grown.nodes):05d}",
        parent=choice.parent,
        passed=not failed,
        speedup=base * outcome.uniform(0.7, 1.5),
        verdict=outcome.choices(["repair", "abandon"] if failed else ["optimize", "accept"], [9, 1])[0],
        strategy=f"s{outcome.randrange(6)}",
        cell=(outcome.randrange(4), outcome.randrange(2), -1),
    )


def recorded(policy: TreePolicy, attempts: int, seed: int = 0) -> list[tuple[Tree, Choice | None]]:
    """A search over simulated attempts: each tree that the policy saw, and what it chose."""
    found: list[tuple[Tree, Choice | None]] = []
    strategies = tuple((f"s{i}", 0.4 - 0.1 * i) for i in range(5))
    grown = tree("a", time_s=9.0, seed=str(seed), strategies=strategies)
    for number in range(attempts):
        choice = policy.select(grown)
        found.append((grown, choice))
        if choice is None:
            break
        digest = blake2b(f"{seed} {number}".encode(), digest_size=8).digest()
        new = replace(child_of(grown, choice, Random(int.from_bytes(digest))), target=choice.target)
        grown = replace(grown, nodes=counted([*grown.nodes, new]))
    return found


@st.composite
def trees(draw: st.DrawFn, name: str = "a", most: int = 12) -> Tree:
    """Trees as the supervisor makes them: parents before children, nothing built on what is under way."""
    nodes: list[Node] = []
    for index in range(draw(st.integers(0, most))):
        parent = draw(st.sampled_from([None, *(n.id for n in nodes if n.finished)]))
        passed, finished = draw(st.booleans()), draw(st.integers(0, 5)) > 0
        verdicts = ["optimize", "accept", "abandon"] if passed else ["repair", "abandon"]
        nodes.append(
            node(
                f"{name}{index}",
                parent=parent,
                passed=passed,
                finished=finished,
                speedup=draw(st.floats(0.01, 50.0)),
                verdict=draw(st.sampled_from(verdicts)),
                strategy=draw(st.sampled_from(["", "s", "t"])),
                solution=draw(st.sampled_from([None, "same"])),
                cell=draw(st.sampled_from([(), (0, 3, -1), (1, 3, -1), (-1, -1, 2)])),
            )
        )
    return tree(
        name,
        *counted(nodes),
        time_s=draw(st.floats(1e-6, 10.0)),
        reachable_s=draw(st.floats(0.0, 12.0)),
        success=draw(st.floats(0.0, 1.0)),
        cost_s=draw(st.floats(0.1, 100.0)),
        exhausted=draw(st.booleans()),
        seed=draw(st.sampled_from(["x", "y"])),
        strategies=draw(st.sampled_from([(), (("s", 0.5), ("t", -0.1))])),
    )


def large_tree(shape: Callable[[int], int | None], count: int = LARGE) -> Tree:
    """A tree of `count` passed nodes; `shape` gives the parent's number."""
    outcome = Random(1)
    nodes = []
    for i in range(count):
        parent = shape(i)
        nodes.append(
            node(
                f"n{i}",
                parent=None if parent is None else f"n{parent}",
                speedup=outcome.uniform(0.5, 9.0),
                strategy=f"s{i % 7}",
                cell=(i % 4, i // 4 % 4, i // 16 % 4, i // 64 % 4),
            )
        )
    return tree("a", *counted(nodes), strategies=(("s1", 0.3), ("s2", 0.1)))


SHAPES: dict[str, Callable[[int], int | None]] = {
    "a chain": lambda i: i - 1 if i else None,
    "starts only": lambda i: None,
    "two children each": lambda i: (i - 1) // 2 if i else None,
}


def _seconds(policy: TreePolicy, tree: Tree) -> float:
    """Processor time of one choice."""
    started = time.thread_time()
    policy.select(tree)
    return time.thread_time() - started


class TreePolicyContract:
    """Contract of `TreePolicy.select`."""

    def test_has_a_name(self, policy: TreePolicy) -> None:
        assert policy.name

    def test_an_empty_tree_starts_from_the_definition(self, policy: TreePolicy) -> None:
        assert policy.select(tree("a")) == Choice("a", None)

    def test_a_closed_tree_gets_no_attempt(self, policy: TreePolicy) -> None:
        one = node("one")
        for closed in (tree("a", one, exhausted=True), tree("a", one, time_s=0.5)):
            assert next_choice([closed], GainPerCost(), policy) is None

    def test_every_prefix_of_a_search_gives_the_choice_that_was_recorded(self, policy: TreePolicy) -> None:
        """In another order, and among trees of another search: what it chose before leaves no trace."""
        searches = [recorded(policy, 40, seed) for seed in range(3)]
        asked = [entry for search in searches for entry in search]
        Random(0).shuffle(asked)
        for seen, choice in asked:
            rebuilt = replace(seen, nodes=tuple(replace(n) for n in seen.nodes))
            assert policy.select(rebuilt) == choice
            assert rebuilt == seen

    @given(grown=trees())
    def test_it_builds_on_a_finished_attempt_that_is_open(self, policy: TreePolicy, grown: Tree) -> None:
        choice = policy.select(grown)
        if choice is None or choice.parent is None:
            return
        assert choice.bottleneck == grown.bottleneck
        parent = next(n for n in grown.nodes if n.id == choice.parent)
        assert parent.finished
        assert parent.verdict == ("optimize" if parent.passed else "repair")

    def test_abandoned_and_accepted_attempts_are_not_built_upon(self, policy: TreePolicy) -> None:
        """A cheating attempt is abandoned."""
        closed = (
            node("accepted", speedup=9.0, verdict="accept"),
            node("cheating", passed=False, verdict="abandon"),
        )
        choice = policy.select(tree("a", *closed))
        assert choice in (None, Choice("a", None))

    def test_a_failure_is_repaired_before_anything_else(self, policy: TreePolicy) -> None:
        broken = node("broken", passed=False, verdict="repair")
        assert policy.select(tree("a", node("fast", speedup=3.0), broken)) == Choice("a", "broken")

    def test_repairs_in_a_row_are_bounded(self, policy: TreePolicy) -> None:
        nodes: list[Node] = []
        for index in range(30):
            choice = policy.select(tree("a", *counted(nodes)))
            if choice is None or (nodes and choice.parent != nodes[-1].id):
                return
            nodes.append(node(f"n{index}", parent=choice.parent, passed=False, verdict="repair"))
        pytest.fail("30 repairs in a row")

    def test_attempts_of_one_round_end(self, policy: TreePolicy) -> None:
        """While attempts are under way it chooses others, or waits, and never builds on them."""
        nodes = [node("first", speedup=2.0, children=0)]
        for index in range(5):
            choice = policy.select(tree("a", *counted(nodes)))
            if choice is None:
                return
            assert choice.parent in (None, "first")
            nodes.append(node(f"n{index}", parent=choice.parent, finished=False))

    @pytest.mark.timing
    @pytest.mark.parametrize("shape", sorted(SHAPES))
    def test_its_work_grows_with_attempts_not_with_pairs(self, policy: TreePolicy, shape: str) -> None:
        small, large = (large_tree(SHAPES[shape], count) for count in (LARGE // 4, LARGE))
        pairs = [(_seconds(policy, small), _seconds(policy, large)) for _ in range(7)]
        assert min(taken for _, taken in pairs) < MOST_GROWTH * min(taken for taken, _ in pairs)


class ArchivePolicyContract(TreePolicyContract):
    """Contract of policies that keep an archive or a map: it decides whom they build on."""

    def test_other_elites_have_other_children(self, policy: TreePolicy) -> None:
        """The same attempts with their speeds exchanged, and so other elites: other parents are drawn."""
        strategies = [f"s{i}" for i in range(8)]
        speeds = [1.2 + 0.5 * i for i in range(8)]
        drawn = []
        for order in (speeds, speeds[::-1]):
            nodes = [
                node(f"n{i}", speedup=speed, strategy=name, cell=(i // 4, 1, 1, 1))
                for i, (name, speed) in enumerate(zip(strategies, order, strict=True))
            ]
            trees = [tree("a", *nodes, seed=str(seed)) for seed in range(40)]
            choices = [choice for one in trees if (choice := policy.select(one)) is not None]
            drawn.append(Counter(choice.parent for choice in choices if choice.parent))
        assert drawn[0] and drawn[1]
        assert (drawn[0] & drawn[1]).total() < 0.5 * min(drawn[0].total(), drawn[1].total())


class Starts:
    """A policy that starts from the definition each time."""

    name = "starts"

    def select(self, tree: Tree) -> Choice | None:
        return Choice(tree.bottleneck, None)


class AllocatorContract:
    """Contract of `Allocator.pick`."""

    def pick(self, allocator: Allocator, *among: Tree) -> str | None:
        """The bottleneck that gets the next attempt, if each starts from the definition."""
        choice = next_choice(among, allocator, Starts())
        return choice.bottleneck if choice else None

    def test_has_a_name(self, allocator: Allocator) -> None:
        assert allocator.name

    def test_no_offer_no_attempt(self, allocator: Allocator) -> None:
        assert allocator.pick([]) is None

    def test_an_exhausted_tree_is_never_chosen(self, allocator: Allocator) -> None:
        assert self.pick(allocator, tree("a", exhausted=True)) is None
        assert self.pick(allocator, tree("a", time_s=100.0, exhausted=True), tree("b")) == "b"

    def test_nothing_left_to_gain_is_left_alone(self, allocator: Allocator) -> None:
        assert self.pick(allocator, tree("a", time_s=1.0, reachable_s=1.0)) is None

    @given(forest=st.tuples(trees("a"), trees("b"), trees("c")))
    def test_it_picks_an_offer_and_the_same_one_again(
        self, allocator: Allocator, forest: tuple[Tree, ...]
    ) -> None:
        offers = [Offer(one, Choice(one.bottleneck, None)) for one in forest if not one.closed]
        picked = allocator.pick(offers)
        assert picked is None or picked in offers
        assert allocator.pick(list(offers)) == picked
