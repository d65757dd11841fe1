"""The cell that a policy asks for reaches the agents, and is kept with the attempt."""

from __future__ import annotations

from typing import Any

import pytest

from agentforge.agents import Aim, Past, Task
from agentforge.schema import Budget, Plan
from agentforge.search import Choice, Tree

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

    def select(self, tree: Tree) -> Choice | None:
        if not tree.nodes:
            return Choice(tree.bottleneck, None)
        first = tree.nodes[0]
        return Choice(tree.bottleneck, first.id, (first.cell[0] + 1, *first.cell[1:]))


@pytest.mark.parametrize("bench", [Budget(attempts=5)], indirect=True)
def test_the_agents_are_asked_for_the_cell(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    aims: list[Aim | None] = []

    class Planner(ScriptedPlanner):
        def plan(self, task: Task, parent: Past | None) -> Plan | None:
            aims.append(task.aim)
            return super().plan(task, parent)

    monkeypatch.setattr(conftest, "ScriptedPlanner", Planner)
    bench.policy = AsksForVectors()
    bench.search(profile(bottleneck("a", sol_s=1e-6)), {"a": SCRIPT}, patience=99)

    attempts = bench.store.attempts("run")
    assert [a.target for a in attempts] == [(), *[(2, -1, -1, -1)] * 4]
    wanted = (("vectors", 1, 2),)
    assert aims[:4] == [None, *[Aim(wanted)] * 3]
    assert aims[4] is not None and aims[4].levels == wanted
    ((name, way, factor, seen),) = aims[4].moves
    assert (name, way, seen) == ("vectors", 1, 3) and factor == pytest.approx((2.0 * 2.1 * 2.2) ** (1 / 3))
