"""The plan for a whole model decides what is begun next and what is left; it is made once."""

from __future__ import annotations

import pytest

from agentforge.agents import Whole
from agentforge.llm import CallFailed
from agentforge.loop.whole import PLANNED
from agentforge.schema import Bottleneck, Budget, ModelPlan, RegionPlan, UsageError

from .conftest import Bench
from .scripted import bottleneck, profile

A, B, C = (
    bottleneck(name, time_s=time, gain_s=time / 2) for name, time in (("a", 9.0), ("b", 2.0), ("c", 3.0))
)
SCRIPT = {name: [{"speed": 1.5}] for name in "abc"}


def named(*regions: tuple[Bottleneck, bool]) -> ModelPlan:
    return ModelPlan(
        regions=tuple(
            RegionPlan(bottleneck=b.definition.hash, name=b.definition.name, fuse=fuse, why="so")
            for b, fuse in regions
        ),
        author="scripted",
    )


class ScriptedModelPlanner:
    name = "scripted"

    def __init__(self, answer: ModelPlan | Exception) -> None:
        self.answer = answer
        self.asked: list[Whole] = []

    def plan_model(self, whole: Whole) -> ModelPlan:
        self.asked.append(whole)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def tried(bench: Bench) -> list[str]:
    known = {b.definition.hash: b.definition.name for b in (A, B, C)}
    return [known[a.bottleneck] for a in bench.store.attempts("run")]


def test_regions_are_begun_in_the_plans_order_and_what_is_left_is_left(bench: Bench) -> None:
    bench.model_planner = ScriptedModelPlanner(named((B, True), (C, True), (A, False)))
    result = bench.search(profile(A, B, C), SCRIPT)
    assert tried(bench) == ["b", "c"]
    assert [win.bottleneck.definition.name for win in result.wins] == ["b", "c"]
    closed = {e["bottleneck"]: e["reason"] for e in bench.of("bottleneck.closed")}
    assert closed[A.definition.hash] == "left by the plan: so"


def test_the_playbooks_order_is_that_of_the_seconds_to_be_had(bench: Bench) -> None:
    bench.search(profile(B, A, C), SCRIPT)
    assert tried(bench) == ["a", "c", "b"]


@pytest.mark.parametrize("bench", [Budget(attempts=1)], indirect=True)
def test_it_is_made_once_and_found_again_by_a_resumed_run(bench: Bench) -> None:
    planner = bench.model_planner = ScriptedModelPlanner(named((C, True), (B, True), (A, True)))
    bench.search(profile(A, B, C), SCRIPT)
    bench.store.update_run("run", budget=Budget(attempts=3))
    bench.search(profile(A, B, C), SCRIPT)
    assert len(planner.asked) == 1
    assert tried(bench)[:2] == ["c", "b"]
    assert bench.kinds().count(PLANNED) == 1
    assert ModelPlan.model_validate(bench.of(PLANNED)[0]["plan"]) == planner.answer


def test_a_planner_without_an_answer_costs_nothing_but_its_order(bench: Bench) -> None:
    bench.model_planner = ScriptedModelPlanner(CallFailed("no route"))
    bench.search(profile(B, A, C), SCRIPT)
    assert tried(bench) == ["a", "c", "b"]
    assert "no route" in bench.of(PLANNED)[0]["plan"]["diagnosis"]


def test_where_nothing_is_to_be_chosen_nobody_is_asked(bench: Bench) -> None:
    planner = bench.model_planner = ScriptedModelPlanner(CallFailed("never"))
    bench.search(profile(A, bottleneck("library", optimizable=False)), SCRIPT)
    assert planner.asked == []
    assert tried(bench) == ["a"]


def test_a_plan_that_forgets_a_region_is_the_planners_fault(bench: Bench) -> None:
    bench.model_planner = ScriptedModelPlanner(named((A, True)))
    with pytest.raises(UsageError, match="each region"):
        bench.search(profile(A, B), SCRIPT)
