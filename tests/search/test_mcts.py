"""`mcts`: widening, priors, virtual loss, and values that prefer the best to a good average."""

from __future__ import annotations

import pytest

from agentforge.search import Node
from agentforge.search.mcts import MCTS, Rule, _Values
from agentforge.testing.search import counted, node, tree

GOOD = node("good", speedup=5.0)
RULES: list[Rule] = ["puct", "uct"]


def parent_of(
    *nodes: Node, rule: Rule = "uct", strategies: tuple[tuple[str, float], ...] = (), widening: float = 0.5
) -> str | None:
    choice = MCTS(rule=rule, widening=widening).select(tree("a", *counted(nodes), strategies=strategies))
    assert choice is not None
    return choice.parent


def test_children_are_added_as_visits_grow() -> None:
    assert parent_of(GOOD) == "good"
    child = node("child", parent="good", speedup=6.0)
    assert parent_of(GOOD, child) is None
    other = node("other", speedup=1.0)
    assert parent_of(GOOD, child, other) in ("good", "child")


@pytest.mark.parametrize("rule", RULES)
def test_it_descends_to_the_better_subtree(rule: Rule) -> None:
    weak = node("weak", speedup=0.3)
    chain = [GOOD, weak, node("g1", parent="good", speedup=6.0), node("w1", parent="weak", speedup=0.3)]
    assert parent_of(*chain, rule=rule) in ("good", "g1")


def test_one_excellent_attempt_outweighs_a_good_average() -> None:
    """Of equal means, the subtree with the higher maximum."""
    even = [node("e"), node("e1", parent="e"), node("e2", parent="e")]
    mixed = [node("m", speedup=0.5), node("m1", parent="m", speedup=0.5), node("m2", parent="m", speedup=1.5)]
    values = _Values(counted([*even, *mixed]))
    assert values.visits[1] == values.visits[4] == 3
    assert values.best[4] > values.best[1]
    assert values.q(4) > values.q(1)


def test_a_repaired_failure_is_one_visit_with_the_reward_of_its_repair() -> None:
    values = _Values(counted([node("f", passed=False, verdict="repair"), node("r", parent="f", speedup=5.0)]))
    assert values.visits == [1, 1, 1]
    assert values.totals[1] == pytest.approx(values.totals[2])


def test_an_attempt_under_way_is_a_visit_with_a_low_reward() -> None:
    values = _Values(counted([GOOD, node("late", parent="good", finished=False)]))
    assert values.visits[1] == 2
    assert values.totals[2] == pytest.approx(GOOD.reward - 0.1)
    assert not values.open[2]


def test_a_solution_that_was_written_before_is_not_built_upon_again() -> None:
    twin = node("twin", speedup=9.0, solution="good")
    assert _Values(counted([GOOD, twin])).open == [True, True, False]


def test_the_knowledge_base_says_which_start_is_worth_a_visit() -> None:
    """Both starts came out alike; the prior decides between them, and whether a third one is begun."""
    starts = [
        node("a", speedup=2.0, strategy="a"),
        node("b", speedup=2.0, strategy="b"),
        node("a1", parent="a", speedup=2.0),
        node("b1", parent="b", speedup=2.0),
    ]
    likes_b = parent_of(*starts, rule="puct", strategies=(("b", 1.0), ("a", 0.0)))
    assert likes_b in ("b", "b1")
    assert parent_of(*starts, rule="puct", strategies=(("a", 1.0), ("b", 0.0))) in ("a", "a1")
    fresh = (("c", 1.0), ("a", 0.0), ("b", 0.0))
    assert parent_of(*starts, rule="puct", strategies=fresh, widening=1.0) is None


@pytest.mark.parametrize("known", [2, 12])
def test_strong_experience_leaves_room_for_a_second_strategy(known: int) -> None:
    strategies, nodes = tuple((f"s{i}", 1.0 - 0.5 * i) for i in range(known)), list[Node]()
    for number in range(20):
        parent = parent_of(*nodes, rule="puct", strategies=strategies)
        tried = {one.id: one.strategy for one in nodes}
        fresh = next((name for name, _ in strategies if name not in tried.values()), "other")
        strategy = tried[parent] if parent else fresh
        nodes.append(node(f"n{number}", parent=parent, speedup=2.0, strategy=strategy))
    used = [one.strategy for one in nodes]
    assert len(set(used)) > 1
    assert used.count("s0") > 10, "experience still decides most"


def test_a_tree_without_an_open_attempt_is_begun_again() -> None:
    assert parent_of(*(node(f"x{i}", passed=False, verdict="abandon") for i in range(9))) is None
