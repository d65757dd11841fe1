"""`evolution`: islands, archives, weights, restarts."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from agentforge.search import Node
from agentforge.search.evolution import Evolution, _weights
from agentforge.testing.search import counted, node, tree


def parents(policy: Evolution, *nodes: Node, draws: int = 200) -> Counter[str | None]:
    """How often each parent is chosen, over runs."""
    found: Counter[str | None] = Counter()
    for run in range(draws):
        choice = policy.select(tree("a", *counted(nodes), seed=str(run)))
        assert choice is not None
        found[choice.parent] += 1
    return found


def starts(number: int) -> list[Node]:
    return [node(f"s{i}", speedup=1.0 + i) for i in range(number)]


def test_each_island_gets_a_start() -> None:
    policy = Evolution(islands=3)
    for begun in range(3):
        assert set(parents(policy, *starts(begun), draws=3)) == {None}
    assert set(parents(policy, *starts(3), draws=3)) == {"s0"}


def test_an_island_builds_on_its_own() -> None:
    policy = Evolution(islands=2, migration=0)
    assert set(parents(policy, *starts(4))) == {"s2"}
    assert set(parents(policy, *starts(5))) == {"s3"}
    assert set(parents(policy, *starts(6))) == {"s2", "s4"}


def test_better_parents_with_fewer_children_are_chosen_more_often() -> None:
    chosen = parents(Evolution(islands=1), *starts(5))
    assert chosen["s4"] > chosen["s0"]
    pool = starts(3)
    light, *_, heavy = _weights(pool)
    assert heavy > light
    assert _weights([*pool[:2], replace(pool[2], children=3)])[2] == heavy / 4


def test_the_neighbours_best_is_a_parent_at_times() -> None:
    policy = Evolution(islands=2, migration=2)
    assert set(parents(policy, *starts(4))) == {"s2", "s3"}
    assert set(parents(policy, *starts(5))) == {"s3", "s4"}
    assert set(parents(policy, *starts(6))) == {"s2", "s4"}


def test_the_archive_has_the_best_different_solutions() -> None:
    twins = [replace(one, solution="same") for one in starts(4)]
    assert set(parents(Evolution(islands=1), *twins)) == {"s0"}
    assert set(parents(Evolution(islands=1, archive=1), *starts(5))) == {"s4"}


def test_an_island_without_progress_starts_again() -> None:
    stuck = [node("s0", speedup=5.0), *(node(f"c{i}", parent="s0", speedup=1.0) for i in range(3))]
    assert set(parents(Evolution(islands=1, restart=3), *stuck)) == {None}
    assert None not in parents(Evolution(islands=1, restart=4), *stuck)
    assert None not in parents(Evolution(islands=1, restart=3), *stuck, node("again", speedup=1.0))


def test_a_repair_stays_on_the_island_of_its_failure() -> None:
    policy = Evolution(islands=2, migration=0)
    broken = node("broken", passed=False, verdict="repair")
    fixed = node("fixed", parent="broken", speedup=2.0)
    begun = node("s1", speedup=1.0)
    assert set(parents(policy, broken, fixed, begun, draws=3)) == {"fixed"}


def test_repairs_take_no_islands_turn() -> None:
    policy = Evolution(islands=2, migration=0)
    failures = [node(f"f{i}", passed=False, verdict="abandon") for i in range(2)]
    repairs = [node(f"r{i}", parent=f"f{i}", speedup=1.0 + i) for i in range(2)]
    (first, second), (mended, again) = failures, repairs
    assert set(parents(policy, first, mended, draws=3)) == {None}, "the other island has no attempt yet"
    assert set(parents(policy, first, mended, second, again, draws=3)) == {"r0"}
    begun = node("s2", parent="r0", speedup=1.0)
    assert set(parents(policy, first, mended, second, again, begun, draws=3)) == {"r1"}
