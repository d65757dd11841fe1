"""Each built-in policy, and each variant that its options make, passes the contract suite."""

from __future__ import annotations

import math
from typing import Any

import pytest

from agentforge.schema import UsageError
from agentforge.search import TreePolicy, policies
from agentforge.testing.search import ArchivePolicyContract, TreePolicyContract

VARIANTS: list[tuple[str, dict[str, Any]]] = [
    *((name, {}) for name in policies.names() if name != "best-first"),
    ("iterative", {"build_on": "best"}),
    ("beam", {"beam": 3, "children": 1}),
    ("mcts", {"rule": "uct"}),
    ("mcts", {"widening": 1.0}),
    ("evolution", {"islands": 1}),
    ("evolution", {"islands": 4, "migration": 2, "restart": 2}),
    ("map-elites", {"targets": 1.0, "any": 0.0}),
    ("map-elites", {"starts": 4, "asks": 1, "restart": 2}),
]


@pytest.mark.parametrize(
    "policy", VARIANTS, ids=lambda v: " ".join([v[0], *map(str, v[1].values())]), indirect=True, scope="class"
)
class TestContract(TreePolicyContract):
    @pytest.fixture(scope="class")
    @classmethod
    def policy(cls, request: pytest.FixtureRequest) -> TreePolicy:
        name, options = request.param
        return policies.create(name, options=options)


@pytest.mark.parametrize("policy", ["map-elites", "evolution"], indirect=True, scope="class")
class TestArchive(ArchivePolicyContract):
    @pytest.fixture(scope="class")
    @classmethod
    def policy(cls, request: pytest.FixtureRequest) -> TreePolicy:
        return policies.create(request.param)


@pytest.mark.parametrize("name", policies.names())
def test_options_are_checked(name: str) -> None:
    with pytest.raises(UsageError, match="has no option 'nope'"):
        policies.check(name, {"nope": 1})
    with pytest.raises(UsageError, match="option repairs of"):
        policies.check(name, {"repairs": 0})


@pytest.mark.parametrize(
    ("name", "option", "value"), [("mcts", "exploration", math.inf), ("evolution", "islands", 10**10)]
)
def test_a_number_that_a_run_would_break_on_is_refused(name: str, option: str, value: float) -> None:
    with pytest.raises(UsageError, match=f"option {option} of"):
        policies.check(name, {option: value})
