"""Several attempts at a time: written side by side, timed one after the other, in an order that stays."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from agentforge.agents import Draft, Past, Task
from agentforge.agents.playbook.planner import PlaybookPlanner
from agentforge.config import SearchSettings
from agentforge.loop._base import PendingAttempt
from agentforge.loop.steps import Steps, _with
from agentforge.schema import (
    Budget,
    Context,
    Critique,
    Evaluation,
    Level,
    MachineError,
    Plan,
    Solution,
    Strategy,
)
from agentforge.search import BestFirst, Choice, GainPerCost, Tree, next_choice, policies
from agentforge.testing.search import node, tree

from . import conftest
from .conftest import Bench
from .scripted import NullKnowledge, ScriptedCoder, ScriptedJudge, bottleneck, profile

ALONE_S = 20.0
"""Longest wait for the others, in seconds; only a search that is not side by side waits so long."""


class MeetingCoder(ScriptedCoder):
    """Writes only once `together` of them write."""

    def __init__(self, together: int) -> None:
        self.met = threading.Barrier(together, timeout=ALONE_S)
        self.seen: dict[str, tuple[Past, ...]] = {}

    def code(self, task: Task, plan: Plan, parent: Past | None) -> Draft:
        self.seen[task.attempt] = task.past
        self.met.wait()
        return super().code(task, plan, parent)


class MeetingJudge(ScriptedJudge):
    def __init__(self, together: int) -> None:
        super().__init__()
        self.met = threading.Barrier(together, timeout=ALONE_S)

    def judge(self, task: Task, plan: Plan, solution: Solution, evaluation: Evaluation) -> Critique:
        self.met.wait()
        return super().judge(task, plan, solution, evaluation)


@pytest.fixture
def coder(bench: Bench) -> MeetingCoder:
    bench.coder = coder = MeetingCoder(3)
    return coder


SPEEDS = {"a": [{"speed": 1.0 + i / 10} for i in range(6)]}


@pytest.mark.parametrize("bench", [Budget(attempts=6)], indirect=True)
def test_written_and_judged_side_by_side_and_timed_in_turn(
    bench: Bench, coder: MeetingCoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conftest, "ScriptedJudge", lambda judge=MeetingJudge(3): judge)
    running = threading.Semaphore(1)

    def alone(solution: Solution, level: Level) -> None:
        assert running.acquire(blocking=False), "two at once on the device"
        time.sleep(0.002)
        running.release()

    bench.referee.before = alone
    bench.search(profile(bottleneck("a", sol_s=1e-6)), SPEEDS, children=3, patience=9)
    assert len(coder.seen) == 6
    attempts = bench.store.attempts("run")
    assert [a.number for a in attempts] == [1, 2, 3, 4, 5, 6]
    assert [e["number"] for e in bench.of("attempt.planned")] == [1, 2, 3, 4, 5, 6]
    evaluated = [e["number"] for e in bench.of("attempt.evaluated")]
    assert evaluated == sorted(evaluated)
    assert [e.seq for e in bench.events] == list(range(1, len(bench.events) + 1))


@pytest.mark.parametrize("bench", [Budget(attempts=3)], indirect=True)
def test_siblings_are_planned_in_sight_of_each_other_and_written_unseen(
    bench: Bench, coder: MeetingCoder
) -> None:
    bench.search(profile(bottleneck("a")), SPEEDS, children=3)
    assert [p.plan.strategy for p in coder.seen["run/0003"] if p.plan] == [
        "strategy-0",
        "strategy-1",
        "strategy-2",
    ]
    assert all(p.solution is None for past in coder.seen.values() for p in past)


CARDS = tuple(
    Strategy(
        id=f"s{n}", title="t", summary="s", template="t",
        parameters={"speed": tuple(1.1 + n + i / 10 for i in range(4)), "unroll": (1, 2)},
    )
    for n in range(3)
)  # fmt: skip


class Cards(NullKnowledge):
    """Knows three strategies with parameters."""

    def retrieve(
        self, context: Context, languages: Sequence[str], device: str, *, after: str = ""
    ) -> tuple[Strategy, ...]:
        return CARDS


@pytest.mark.slow
@pytest.mark.parametrize("bench", [Budget(attempts=15)], indirect=True)
@pytest.mark.parametrize("name", policies.names())
def test_the_attempts_of_a_round_differ(bench: Bench, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """In what they build on or what they try: the planner sees the plans before in the same round."""
    rounds: list[list[str]] = []
    choose = Steps._choose

    def kept(steps: Steps, trees: list[Tree]) -> list[PendingAttempt]:
        chosen = choose(steps, trees)
        rounds.append([child["attempt"] for child in chosen])
        return chosen

    monkeypatch.setattr(Steps, "_choose", kept)
    monkeypatch.setattr(conftest, "ScriptedPlanner", lambda script: PlaybookPlanner())
    bench.policy, bench.knowledge = policies.create(name), Cards()
    bench.search(profile(bottleneck("a", sol_s=1e-6)), {}, patience=99, children=3)
    made = {a.id: a for a in bench.store.attempts("run")}
    assert len(made) > 6
    for names in rounds:
        some = [made[n] for n in names if n in made]
        tried = [(a.parent, a.plan.strategy, str(a.plan.parameters)) for a in some if a.plan]
        assert len(set(tried)) == len(tried)
    assert max(map(len, rounds)) == (1 if name == "iterative" else 3)


@pytest.mark.parametrize("bench", [Budget(attempts=4)], indirect=True)
def test_a_round_does_not_pass_the_budget_of_attempts(bench: Bench) -> None:
    result = bench.search(profile(bottleneck("a", sol_s=1e-6)), SPEEDS, children=3, patience=9)
    assert (result.attempts, result.out_of_budget) == (4, True)


def test_what_stops_one_stops_all_and_is_gone_on_with(bench: Bench) -> None:
    script: dict[str, list[Any]] = {"a": [{"speed": 1.5}, MachineError("nvcc is missing"), {"speed": 2.0}]}
    with pytest.raises(MachineError, match="nvcc"):
        bench.search(profile(bottleneck("a")), script, children=3)
    again = bench.search(profile(bottleneck("a")), {"a": [{"speed": 1.5}, {"speed": 2.0}]}, children=3)
    assert again.attempts == 2
    assert [a.number for a in bench.store.attempts("run")] == [1, 2]


def test_a_planner_that_ends_in_the_middle_of_a_round(bench: Bench) -> None:
    result = bench.search(profile(bottleneck("a")), {"a": [{"speed": 1.5}, {"speed": 1.2}]}, children=5)
    assert result.attempts == 2
    assert bench.of("bottleneck.closed")[-1]["reason"] == "the planner has nothing left to propose"


def test_what_is_compiled_ahead_is_all_of_a_round(bench: Bench) -> None:
    built: list[str] = []
    bench.referee.build = lambda solution: built.append(solution.hash)  # type: ignore[attr-defined]
    bench.search(profile(bottleneck("a")), {"a": [{"speed": 1.5}, {"speed": 1.2}]}, children=2)
    assert sorted(built) == sorted({a.solution for a in bench.store.attempts("run")})


@pytest.mark.parametrize("bench", [Budget(minutes=1)], indirect=True)
def test_nothing_is_compiled_once_the_minutes_are_used_up(bench: Bench) -> None:
    now, built = [0.0], list[str]()

    class Slow(ScriptedCoder):
        def code(self, task: Task, plan: Plan, parent: Past | None) -> Draft:
            now[0] = 99.0 if task.attempt == "run/0002" else now[0]
            return super().code(task, plan, parent)

    bench.coder = Slow()
    bench.referee.build = lambda solution: built.append(solution.hash)  # type: ignore[attr-defined]
    script = {"a": [{"speed": 1.5}, {"speed": 1.2}]}
    bench.search(profile(bottleneck("a")), script, clock=lambda: now[0], children=2)
    assert bench.store.attempts("run")[1].solution not in {*built, None}


def test_a_mendable_failure_is_mended_once_in_a_round() -> None:
    broken = tree("a", node("a1", passed=False, verdict="repair"), time_s=9.0)
    choice = BestFirst().select(broken)
    assert choice == Choice("a", "a1")
    assert BestFirst().select(_with(broken, choice, "a2")) == Choice("a", None)


def test_a_round_spreads_over_regions_that_promise_alike() -> None:
    trees, chosen = [tree("a"), tree("b", time_s=0.99)], []
    for number in range(4):
        choice = next_choice(trees, GainPerCost(), BestFirst())
        assert choice is not None
        chosen.append(choice.bottleneck)
        trees = [_with(t, choice, str(number)) for t in trees]
    assert set(chosen) == {"a", "b"}
    assert replace(trees[0], nodes=(), success=0.5) == tree("a")


def test_how_many_at_a_time() -> None:
    assert SearchSettings().width == 1
    assert SearchSettings(coder="playbook,openai:m").width == 3
    assert SearchSettings(coder="openai:m", children=2).width == 2
