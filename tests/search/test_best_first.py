"""BestFirst and GainPerCost: the contracts, their own preferences, and properties over random trees."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentforge.config import SearchSettings
from agentforge.search import (
    Allocator,
    BestFirst,
    Choice,
    GainPerCost,
    Tree,
    TreePolicy,
    allocators,
    expected_gain,
    next_choice,
    policies,
)
from agentforge.testing.search import AllocatorContract, TreePolicyContract, node, tree, trees


class TestContract(TreePolicyContract):
    @pytest.fixture(scope="class")
    @classmethod
    def policy(cls) -> TreePolicy:
        return policies.create("best-first")


class TestAllocator(AllocatorContract):
    @pytest.fixture(scope="class")
    @classmethod
    def allocator(cls) -> Allocator:
        return allocators.create("gain-per-cost")


def choose(*trees: Tree, **options: int) -> tuple[str, str | None]:
    choice = next_choice(trees, GainPerCost(), BestFirst(**options))
    assert choice is not None
    return choice.bottleneck, choice.parent


def test_the_larger_gain_a_second_wins() -> None:
    tried = node("tried")
    assert choose(tree("small", tried, time_s=1.0), tree("large", tried, time_s=2.0))[0] == "large"
    assert choose(tree("likely", tried, success=0.9), tree("unlikely", tried, success=0.1))[0] == "likely"
    assert choose(tree("dear", tried, cost_s=100.0), tree("cheap", tried, cost_s=5.0))[0] == "cheap"


def test_what_is_begun_next_is_the_first_without_an_attempt() -> None:
    assert choose(tree("first", time_s=1.0), tree("second", time_s=2.0)) == ("first", None)
    begun = tree("first", node("one"), time_s=1.0)
    assert choose(begun, tree("second", time_s=2.0), tree("third", time_s=3.0)) == ("second", None)
    assert choose(replace(begun, time_s=9.0), tree("second", time_s=2.0))[0] == "first"
    assert choose(tree("done", exhausted=True), tree("open")) == ("open", None)


def test_a_promotion_moves_the_search_on() -> None:
    before = tree("first", time_s=2.0, reachable_s=0.5), tree("second", time_s=1.5, reachable_s=0.5)
    assert choose(*before)[0] == "first"
    assert choose(replace(before[0], time_s=0.6, nodes=(node("promoted"),)), before[1])[0] == "second"


def test_a_repair_comes_before_everything_else_in_the_tree() -> None:
    broken = node("broken", passed=False, verdict="repair")
    assert choose(tree("a", node("fast", speedup=9.0), broken))[1] == "broken"


def test_a_repair_that_was_tried_is_not_tried_again() -> None:
    broken = node("broken", passed=False, verdict="repair", children=1)
    assert choose(tree("a", broken, node("fixed", parent="broken", speedup=2.0)), starts=1)[1] == "fixed"


def test_a_repair_comes_before_new_work_in_every_tree() -> None:
    broken = tree("small", node("broken", passed=False, verdict="repair"), time_s=0.6)
    assert choose(tree("large", time_s=9.0), broken) == ("small", "broken")
    assert choose(tree("large", time_s=9.0), replace(broken, exhausted=True)) == ("large", None)


def test_starts_after_a_success_are_limited() -> None:
    passed = node("one", speedup=0.2, children=2)
    assert choose(tree("a", passed), starts=1, restarts=1)[1] is None
    again = tree("a", passed, node("two", verdict="abandon"))
    assert choose(again, starts=1, restarts=1)[1] == "one"
    assert choose(again, starts=1)[1] is None
    worn = tree("a", replace(passed, children=3), node("two", verdict="abandon"))
    assert BestFirst(starts=1, restarts=1).select(worn) is None
    assert choose(worn, tree("b", time_s=0.6), starts=1, restarts=1) == ("b", None)
    failures = tree("a", *[node(str(i), passed=False, verdict="abandon") for i in range(5)])
    assert choose(failures, starts=1, restarts=1)[1] is None


def test_starts_made_side_by_side_leave_a_restart() -> None:
    settings = SearchSettings(planner="openai:m", coder="openai:m", judge="openai:m")
    round_ = [node("one", verdict="abandon"), *(node(x, passed=False, verdict="abandon") for x in "23")]
    assert settings.width == len(round_)
    policy = BestFirst(**settings.policy_options)
    again = tree("a", *round_)
    assert policy.select(again) == Choice("a", None)
    assert policy.select(replace(again, nodes=(*again.nodes, node("4", verdict="abandon")))) is None
    one = settings.model_copy(update={"children": 1})
    assert one.policy_options == {"starts": 1, "restarts": 1}


def test_repairs_in_a_row_are_bounded() -> None:
    chain = [
        node("r1", passed=False, verdict="repair", children=1),
        node("r2", parent="r1", passed=False, verdict="repair", children=1),
        node("r3", parent="r2", passed=False, verdict="repair"),
    ]
    assert choose(tree("a", *chain), repairs=3)[1] == "r3"
    assert choose(tree("a", *chain), repairs=2)[1] is None


def test_several_starts_come_before_the_first_is_built_upon() -> None:
    assert choose(tree("a", node("one", speedup=5.0)), starts=2)[1] is None
    assert choose(tree("a", node("one", speedup=5.0), node("two")), starts=2)[1] == "one"


def test_accepted_and_abandoned_attempts_are_not_built_upon() -> None:
    closed = node("best", speedup=9.0, verdict="accept"), node("odd", speedup=5.0, verdict="abandon")
    assert choose(tree("a", *closed, node("open", speedup=2.0)))[1] == "open"
    assert choose(tree("a", *closed))[1] is None


def test_attempts_built_on_a_parent_wear_it_out() -> None:
    worn = node("worn", speedup=2.0, children=3)
    assert choose(tree("a", worn, node("other", speedup=1.5)))[1] == "other"


@pytest.mark.parametrize("option", ["beam", "repairs", "children", "starts"])
def test_options_below_one_are_refused(option: str) -> None:
    with pytest.raises(ValueError, match="greater than or equal to 1"):
        BestFirst(**{option: 0})


def can_be_repaired(tree: Tree) -> bool:
    """Whether the policy, asked about this tree alone, repairs a failure."""
    choice = BestFirst().select(tree)
    verdicts = {n.id: n.verdict for n in tree.nodes}
    return choice is not None and choice.parent is not None and verdicts[choice.parent] == "repair"


forests = st.tuples(trees("a"), trees("b"), trees("c"))


@pytest.mark.slow
@given(forests)
def test_the_choice_is_open_and_the_most_worthwhile(forest: tuple[Tree, ...]) -> None:
    choice = next_choice(forest, GainPerCost(), BestFirst())
    worth = {t.bottleneck: expected_gain(t) for t in forest if not t.exhausted and expected_gain(t) > 0}
    if choice is None:
        assert not worth
        return
    chosen = next(t for t in forest if t.bottleneck == choice.bottleneck)
    broken = {t.bottleneck for t in forest if t.bottleneck in worth and can_be_repaired(t)}
    if broken:
        assert worth[choice.bottleneck] == max(worth[name] for name in broken)
        assert next(n for n in chosen.nodes if n.id == choice.parent).verdict == "repair"
        return
    best = max((t for t in forest if t.bottleneck in worth), key=expected_gain)
    if best.nodes:
        assert worth[choice.bottleneck] == max(worth.values())
    else:
        assert chosen == next(t for t in forest if t.bottleneck in worth and not t.nodes)
    if choice.parent is not None:
        parent = next(n for n in chosen.nodes if n.id == choice.parent)
        assert parent.finished
        assert parent.verdict == ("optimize" if parent.passed else "repair")


@pytest.mark.slow
@given(forests)
def test_it_is_deterministic_and_leaves_its_input_alone(forest: tuple[Tree, ...]) -> None:
    copy = tuple(replace(t) for t in forest)
    assert next_choice(forest, GainPerCost(), BestFirst()) == next_choice(copy, GainPerCost(), BestFirst())
    assert forest == copy


@pytest.mark.slow
@given(trees("a"), st.integers(1, 60))
def test_no_line_of_repairs_goes_on_for_ever(start: Tree, steps: int) -> None:
    """Every attempt fails and asks for a repair: fresh starts must come in between."""
    nodes, policy = list(start.nodes), BestFirst()
    repaired_in_a_row = 0
    for index in range(steps):
        choice = policy.select(replace(start, nodes=tuple(nodes)))
        assert choice is not None
        failing = {n.id for n in nodes if n.verdict == "repair"}
        repaired_in_a_row = repaired_in_a_row + 1 if choice.parent in failing else 0
        assert repaired_in_a_row <= policy.repairs * (len(start.nodes) + 1)
        nodes = [replace(n, children=n.children + (n.id == choice.parent)) for n in nodes]
        nodes.append(node(f"new{index}", parent=choice.parent, passed=False, verdict="repair"))
