"""Every policy in the loop: what it chose follows from the store, attempt by attempt."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from agentforge.config import SearchSettings
from agentforge.loop import BottleneckState, RunLog
from agentforge.schema import Budget, Priors
from agentforge.search import Choice, Tree, TreePolicy, policies
from agentforge.store import Store

from .conftest import Bench
from .scripted import bottleneck, profile

SCRIPT: list[dict[str, Any]] = [
    {"speed": 1.2},
    {"speed": 1.0, "status": "CRASHED"},
    {"speed": 1.4},
    {"speed": 1.0, "cannot": "write it"},
    {"speed": 1.0, "status": "CHEATING"},
    {"speed": 1.1},
    *({"speed": 1.5 + i / 10} for i in range(6)),
]


@dataclass
class Recording:
    """A policy that keeps what another one sees and chooses."""

    policy: TreePolicy
    seen: list[tuple[Tree, Choice | None]] = field(default_factory=list)

    @property
    def name(self) -> str:
        return self.policy.name

    def select(self, tree: Tree) -> Choice | None:
        choice = self.policy.select(tree)
        self.seen.append((tree, choice))
        return choice


@pytest.mark.slow
@pytest.mark.parametrize("bench", [Budget(attempts=12)], indirect=True)
@pytest.mark.parametrize("name", policies.names())
def test_each_choice_follows_from_the_store(bench: Bench, name: str) -> None:
    recording = Recording(policies.create(name))
    bench.policy = recording
    region = bottleneck("a", sol_s=1e-6)
    result = bench.search(profile(region), {"a": SCRIPT}, patience=99)
    assert result.wins
    assert len(recording.seen) >= result.attempts > 4

    with Store(f"sqlite:///{bench.folder / 'agentforge.db'}") as store:
        run_log = RunLog(store, store.get_run("run"))
        attempts, evaluations = run_log.attempts(), run_log.evaluations(region.definition.hash)
        priors = run_log.record(Priors)
        assert priors is not None
        for tree, choice in recording.seen:
            before = attempts[: len(tree.nodes)]
            state = BottleneckState(region, before, {a.id: evaluations[a.id] for a in before if a.evaluation})
            rebuilt = state.tree(
                SearchSettings(patience=99),
                prior=priors.by_bottleneck[region.definition.hash],
                cost_s=1.0,
                planless=False,
                seed=run_log.run.id,
            )
            assert replace(rebuilt, cost_s=0, success=0) == replace(tree, cost_s=0, success=0)
            assert policies.create(name).select(rebuilt) == choice


@pytest.mark.slow
@pytest.mark.parametrize("bench", [Budget(attempts=12)], indirect=True)
@pytest.mark.parametrize("name", policies.names())
def test_nothing_is_built_on_a_cheating_attempt_or_one_under_way(bench: Bench, name: str) -> None:
    bench.policy = Recording(policies.create(name))
    bench.search(profile(bottleneck("a", sol_s=1e-6)), {"a": SCRIPT}, patience=99, children=3)
    for tree, choice in bench.policy.seen:
        nodes = {node.id: node for node in tree.nodes}
        if choice is not None and choice.parent is not None:
            assert nodes[choice.parent].finished
            assert nodes[choice.parent].verdict in ("optimize", "repair")
    cheating = {n.id for tree, _ in bench.policy.seen for n in tree.nodes if n.verdict == "abandon"}
    assert cheating
    assert cheating.isdisjoint(a.parent for a in bench.store.attempts("run"))
