"""What every `SearchPolicy` must do: inherit, give a `policy` fixture, and pytest runs the suite."""

from __future__ import annotations

from agentforge.search import Node, SearchPolicy, Tree


def node(
    identifier: str,
    *,
    parent: str | None = None,
    passed: bool = True,
    finished: bool = True,
    speedup: float | None = 1.0,
    verdict: str = "optimize",
    children: int = 0,
) -> Node:
    """A node with defaults that suit a test; a failed one has no speedup."""
    return Node(identifier, parent, passed, finished, speedup if passed else None, verdict, children)


def tree(
    bottleneck: str,
    *nodes: Node,
    time_s: float = 1.0,
    reachable_s: float = 0.5,
    success: float = 0.5,
    cost_s: float = 10.0,
    exhausted: bool = False,
) -> Tree:
    """A tree with defaults that suit a test."""
    return Tree(bottleneck, time_s, reachable_s, success, cost_s, nodes, exhausted)


class SearchPolicyContract:
    """Contract of `SearchPolicy.select`."""

    def test_has_a_name(self, policy: SearchPolicy) -> None:
        assert policy.name

    def test_no_tree_no_choice(self, policy: SearchPolicy) -> None:
        assert policy.select([]) is None

    def test_an_exhausted_tree_is_never_chosen(self, policy: SearchPolicy) -> None:
        assert policy.select([tree("a", exhausted=True)]) is None
        choice = policy.select([tree("a", time_s=100.0, exhausted=True), tree("b")])
        assert choice is not None
        assert choice.bottleneck == "b"

    def test_an_empty_tree_starts_from_the_definition(self, policy: SearchPolicy) -> None:
        choice = policy.select([tree("a")])
        assert choice is not None
        assert (choice.bottleneck, choice.parent) == ("a", None)

    def test_nothing_left_to_gain_is_left_alone(self, policy: SearchPolicy) -> None:
        assert policy.select([tree("a", time_s=1.0, reachable_s=1.0)]) is None

    def test_the_parent_is_in_the_chosen_tree(self, policy: SearchPolicy) -> None:
        trees = [tree("a", node("a1", speedup=3.0, children=1)), tree("b", node("b1", speedup=2.0))]
        choice = policy.select(trees)
        assert choice is not None
        members = {t.bottleneck: {n.id for n in t.nodes} for t in trees}
        assert choice.parent is None or choice.parent in members[choice.bottleneck]

    def test_the_same_trees_give_the_same_choice(self, policy: SearchPolicy) -> None:
        trees = [tree("a", node("a1"), node("a2", speedup=1.5)), tree("b")]
        assert policy.select(trees) == policy.select(list(trees))
