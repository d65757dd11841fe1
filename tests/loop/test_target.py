"""The cell that a policy asks for reaches the agents, and is kept with the attempt."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from agentforge.agents import Aim, Hardware, Past, Task
from agentforge.schema import Budget, Plan
from agentforge.search import Choice, Tree, newest_repairable

from . import conftest
from .conftest import Bench
from .scripted import ScriptedPlanner, bottleneck, profile

SCRIPT: list[dict[str, Any]] = [
    {"speed": 1.0, "vector_bits": 128},
    *({"speed": 2.0 + i / 10, "vector_bits": 256} for i in range(3)),
    {"speed": 3.0, "vector_bits": 512},
]


class AsksForVectors:
    """Builds on the first attempt, and asks for one more level of vectors."""

    name = "asks"
    highest: tuple[int, ...] = ()

    def select(self, tree: Tree) -> Choice | None:
        self.highest = tree.highest
        if not tree.nodes:
            return Choice(tree.bottleneck, None)
        first = tree.nodes[0]
        return Choice(tree.bottleneck, first.id, (first.cell[0] + 1, *first.cell[1:]))


class Repairs(AsksForVectors):
    """The same, but repairs come first, as under all policies."""

    def select(self, tree: Tree) -> Choice | None:
        broken = newest_repairable(tree, 2)
        return Choice(tree.bottleneck, broken.id, broken.target) if broken else super().select(tree)


@pytest.fixture
def aims(monkeypatch: pytest.MonkeyPatch) -> list[Aim | None]:
    """What the planner was asked for, attempt by attempt."""
    seen: list[Aim | None] = []

    class Planner(ScriptedPlanner):
        def plan(self, task: Task, parent: Past | None) -> Plan | None:
            seen.append(task.aim)
            return super().plan(task, parent)

    monkeypatch.setattr(conftest, "ScriptedPlanner", Planner)
    return seen


@pytest.mark.parametrize("bench", [Budget(attempts=5)], indirect=True)
def test_the_agents_are_asked_for_the_cell(bench: Bench, aims: list[Aim | None]) -> None:
    bench.policy = AsksForVectors()
    bench.search(profile(bottleneck("a", sol_s=1e-6)), {"a": SCRIPT}, patience=99)

    attempts = bench.store.attempts("run")
    assert [a.target for a in attempts] == [(), *[(2, -1, -1, -1)] * 4]
    wanted = (("vectors", 1, 2),)
    assert aims[:4] == [None, *[Aim(wanted)] * 3]
    assert aims[4] is not None and aims[4].levels == wanted
    ((name, way, factor, seen),) = aims[4].moves
    assert (name, way, seen) == ("vectors", 1, 3) and factor == pytest.approx((2.0 * 2.1 * 2.2) ** (1 / 3))


@pytest.mark.parametrize("bench", [Budget(attempts=4)], indirect=True)
def test_a_repair_is_asked_for_the_cell_of_its_failure(bench: Bench, aims: list[Aim | None]) -> None:
    broken = {"speed": 1.0, "status": "COMPILE_ERROR"}
    bench.policy = Repairs()
    script = [SCRIPT[0], broken, broken, SCRIPT[1]]
    bench.search(profile(bottleneck("a", sol_s=1e-6)), {"a": script}, patience=99)
    assert [a.parent for a in bench.store.attempts("run")] == [None, "run/0001", "run/0002", "run/0003"]
    assert aims == [None, *[Aim((("vectors", 1, 2),))] * 3]


@pytest.mark.parametrize("bench", [Budget(attempts=1)], indirect=True)
def test_policies_know_how_wide_the_machines_vectors_are(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conftest, "Hardware", partial(Hardware, vector_bits=256))
    bench.policy = policy = AsksForVectors()
    bench.search(profile(bottleneck("a", sol_s=1e-6)), {"a": SCRIPT[:1]}, patience=99)
    assert policy.highest[0] == 2
