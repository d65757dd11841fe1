"""`map-elites`: elites of cells, targets, restarts."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from agentforge.search import Choice, Node
from agentforge.search.map_elites import MapElites
from agentforge.testing.search import counted, node, tree


def choices(policy: MapElites, *nodes: Node, draws: int = 200) -> Counter[Choice]:
    """How often each choice is made, over runs."""
    found: Counter[Choice] = Counter()
    for run in range(draws):
        choice = policy.select(tree("a", *counted(nodes), seed=str(run)))
        assert choice is not None
        found[choice] += 1
    return found


def parents(policy: MapElites, *nodes: Node) -> set[str | None]:
    return {choice.parent for choice in choices(policy, *nodes)}


SLOW = node("slow", speedup=1.1, cell=(0, 0))
FAST = node("fast", speedup=3.0, cell=(0, 0))
OTHER = node("other", speedup=1.5, cell=(2, 0))


def test_only_the_best_of_a_cell_is_built_upon() -> None:
    policy = MapElites(targets=0.0, any=0.0)
    assert parents(policy, SLOW, OTHER) == {"slow", "other"}
    assert parents(policy, SLOW, OTHER, FAST) == {"fast", "other"}
    assert parents(MapElites(targets=0.0, any=1.0), SLOW, OTHER, FAST) == {"slow", "fast", "other"}


def test_the_reward_and_the_children_weigh() -> None:
    policy = MapElites(targets=0.0, any=0.0)
    often = choices(policy, FAST, OTHER)
    assert often[Choice("a", "fast")] > often[Choice("a", "other")]
    tired = choices(policy, FAST, OTHER, *(node(f"c{i}", parent="fast", passed=False) for i in range(5)))
    assert tired[Choice("a", "fast")] < tired[Choice("a", "other")]


def test_a_start_comes_first_and_after_attempts_without_a_new_elite() -> None:
    policy = MapElites(restart=3)
    assert parents(policy, FAST) == {None}
    idle = [replace(SLOW, id=f"s{i}", parent="fast") for i in range(3)]
    assert None not in parents(policy, OTHER, FAST, *idle[:2])
    assert parents(policy, OTHER, FAST, *idle) == {None}


def test_the_target_is_an_empty_neighbour_of_the_elite_with_most_of_them() -> None:
    policy = MapElites(targets=1.0)
    targets = {choice.target for choice in choices(policy, OTHER, FAST)}
    assert targets == {(1, 0), (3, 0), (2, 1)}
    full = [node(f"n{i}", cell=cell) for i, cell in enumerate([(1, 0), (3, 0), (2, 1)])]
    closed = [replace(n, verdict="accept") for n in full]
    assert choices(policy, OTHER, FAST, *closed).keys() == {Choice("a", "fast", (0, 1))}


def test_no_target_is_beyond_what_the_machine_can_do() -> None:
    policy, grown = MapElites(targets=1.0, starts=1), tree("a", OTHER)
    choices_ = (policy.select(replace(grown, highest=(2, 1), seed=str(run))) for run in range(50))
    assert {choice.target for choice in choices_ if choice} == {(1, 0), (2, 1)}


def test_a_target_is_asked_for_a_few_times() -> None:
    policy = MapElites(targets=1.0, any=0.0, asks=2)
    asked = [replace(node(f"n{i}", parent="fast", cell=(0, 0)), target=(0, 1)) for i in range(2)]
    fast, line = replace(FAST, cell=(0, 0)), [node(f"x{i}", cell=(i, 0)) for i in (1, 2, 3)]
    wanted = {choice.target for choice in choices(policy, fast, *line, *asked)}
    assert (0, 1) not in wanted and {(1, 1), (2, 1), (3, 1)} >= wanted


def test_a_repair_uses_up_no_ask() -> None:
    policy = MapElites(targets=1.0, any=0.0, asks=2)
    broken = replace(node("broken", parent="fast", passed=False, verdict="abandon"), target=(0, 1))
    repair = replace(node("fixed", parent="broken", cell=(0, 0)), target=(0, 1))
    fast, line = replace(FAST, cell=(0, 0)), [node(f"x{i}", cell=(i, 0)) for i in (1, 2, 3)]
    assert (0, 1) in {choice.target for choice in choices(policy, fast, *line, broken, repair)}


def test_a_repair_keeps_the_target_of_what_it_repairs() -> None:
    broken = replace(node("broken", passed=False, verdict="repair"), target=(1, 0))
    assert MapElites().select(tree("a", FAST, OTHER, broken)) == Choice("a", "broken", (1, 0))
