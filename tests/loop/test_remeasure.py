"""What looks faster and was not verified on a busy machine is measured again, and not lost."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from agentforge.loop.bottleneck_state import LAST_REMEASUREMENTS
from agentforge.schema import Budget, Level, Solution, TimeEnded

from .conftest import Bench
from .scripted import bottleneck, profile


def full(bench: Bench) -> int:
    return sum(level is Level.FULL for _, level in bench.referee.evaluations)


def test_a_winner_on_a_busy_machine_is_measured_again_before_its_bottleneck_is_closed(bench: Bench) -> None:
    script = {"a": [{"speed": 3.0, "noisy": 1}] + [{"speed": 0.9 - i / 100} for i in range(20)]}
    result = bench.search(profile(bottleneck("a")), script, patience=2)
    assert [win.attempt for win in result.wins] == ["run/0001"]
    assert result.wins[0].evaluation.verified
    assert full(bench) == 2
    assert ("strategy-0", True, True) in bench.knowledge.recorded
    promoted = bench.of("promotion")
    assert [e["number"] for e in promoted] == [1]
    assert [p.solution for p in bench.store.promotions("run")] == [promoted[0]["solution"]]


def test_it_is_measured_before_the_bottleneck_of_a_planner_without_plans_stays_closed(bench: Bench) -> None:
    result = bench.search(profile(bottleneck("a")), {"a": [{"speed": 3.0, "noisy": 2}]})
    assert len(result.wins) == 1
    assert bench.store.attempts("run")[0].remeasured == 2


def test_a_machine_that_stays_busy_ends_the_search_without_a_win(bench: Bench) -> None:
    script = {"a": [{"speed": 3.0 + i, "noisy": 9} for i in range(30)]}
    result = bench.search(profile(bottleneck("a", sol_s=1e-6)), script, patience=3)
    assert result.wins == ()
    assert result.attempts == 9
    assert {a.remeasured for a in bench.store.attempts("run")} == {2}
    assert result.reason == "nothing left is worth another attempt"


@pytest.mark.parametrize("bench", [Budget(minutes=60)], indirect=True)
def test_without_patience_nothing_is_measured_again(bench: Bench) -> None:
    script = {"a": [{"speed": 3.0, "noisy": 1}, {"speed": 2.0}]}
    result = bench.search(profile(bottleneck("a", sol_s=1e-6)), script, patient=False)
    assert [win.attempt for win in result.wins] == ["run/0002"]
    assert {a.remeasured for a in bench.store.attempts("run")} == {0}


@pytest.mark.parametrize("bench", [Budget(minutes=60)], indirect=True)
def test_while_minutes_are_left_a_busy_machine_loses_no_winner(bench: Bench) -> None:
    script = {"a": [{"speed": 2.0, "noisy": 8}, {"speed": 3.0, "noisy": 12, "accept": "nothing is left"}]}
    result = bench.search(profile(bottleneck("a", sol_s=1e-6)), script, clock=lambda: 0.0)
    assert [win.attempt for win in result.wins] == ["run/0002"]


@pytest.mark.parametrize("bench", [Budget(minutes=60)], indirect=True)
def test_measuring_again_ends_even_if_the_machine_never_becomes_quiet(bench: Bench) -> None:
    script = {"a": [{"speed": 3.0, "noisy": 99}]}
    assert not bench.search(profile(bottleneck("a")), script, clock=lambda: 0.0).wins
    assert bench.store.attempts("run")[0].remeasured == LAST_REMEASUREMENTS


@pytest.mark.parametrize("bench", [Budget(minutes=1.0)], indirect=True)
def test_measuring_again_ends_with_the_minutes(bench: Bench) -> None:
    ticks = itertools.count(step=1.0)
    script = {"a": [{"speed": 3.0, "noisy": 99}]}
    bench.search(profile(bottleneck("a")), script, clock=lambda: next(ticks))
    assert 2 < bench.store.attempts("run")[0].remeasured < LAST_REMEASUREMENTS


def test_a_slow_result_on_a_busy_machine_is_not_believed(bench: Bench) -> None:
    script = {"a": [{"speed": 2.0, "full": 0.5, "noisy": 1}]}

    def recovered(solution: Solution, level: Level) -> None:
        if full(bench):
            bench.referee.speed = 2.0

    bench.referee.before = recovered
    assert len(bench.search(profile(bottleneck("a")), script).wins) == 1


def test_only_what_is_faster_than_the_incumbent_is_measured_again(bench: Bench) -> None:
    script = {"a": [{"speed": 2.0, "noisy": 1}, {"speed": 4.0}, {"speed": 5.0, "full": 3.0, "noisy": 1}]}
    result = bench.search(profile(bottleneck("a")), script)
    assert [win.attempt for win in result.wins] == ["run/0002"]
    assert all(a.remeasured == 0 for a in bench.store.attempts("run"))


def test_what_proves_wrong_when_it_is_measured_again_is_no_winner(bench: Bench) -> None:
    script = {"a": [{"speed": 3.0, "noisy": 1}]}
    seen: list[Level] = []

    def slower(solution: Solution, level: Level) -> None:
        seen.append(level)
        if len(seen) == 3:
            bench.referee.speed = 0.5

    bench.referee.before = slower
    result = bench.search(profile(bottleneck("a")), script)
    assert result.wins == ()
    assert [e["measured_speedup"] for e in bench.of("attempt.reflected")] == [3.0, 0.5]


@pytest.mark.parametrize("bench", [Budget(attempts=1)], indirect=True)
def test_it_is_measured_again_at_the_end_of_a_budget_of_attempts(bench: Bench) -> None:
    script = {"a": [{"speed": 3.0, "noisy": 2}, {"speed": 4.0}]}
    assert len(bench.search(profile(bottleneck("a")), script).wins) == 1


@pytest.mark.parametrize("bench", [Budget(minutes=0.7)], indirect=True)
def test_when_the_minutes_are_used_up_only_the_fastest_is_measured_again(bench: Bench) -> None:
    ticks = itertools.count(step=1.0)
    script = {"a": [{"speed": 3.0, "noisy": 1}, {"speed": 4.0, "noisy": 2}, {"speed": 2.0, "noisy": 1}] * 9}
    result = bench.search(
        profile(bottleneck("a", sol_s=1e-6)), script, clock=lambda: next(ticks), patience=99
    )
    assert "minutes" in result.reason
    attempts = bench.store.attempts("run")
    assert len(attempts) > 1
    assert [a.number for a in attempts if a.remeasured] == [2]


@pytest.mark.parametrize("bench", [Budget(minutes=1.0)], indirect=True)
def test_when_the_minutes_are_used_up_one_attempt_of_all_regions_is_measured_until_a_deadline(
    bench: Bench,
) -> None:
    """The one that saves most: 3x of the large region, not 4x of the small one."""
    now = [0.0]

    def slow(solution: Solution, level: Level) -> None:
        now[0] += 10.0

    bench.referee.before = slow
    small, large = bottleneck("a", time_s=1.0, sol_s=1e-6), bottleneck("b", time_s=4.0, sol_s=1e-6)
    speeds = {"a": 4.0, "b": 3.0}
    script = {n: [{"speed": s + i / 100, "noisy": 1} for i in range(9)] for n, s in speeds.items()}
    result = bench.search(profile(large, small), script, clock=lambda: now[0], patience=99)
    assert "minutes" in result.reason
    attempts = bench.store.attempts("run")
    assert {a.bottleneck for a in attempts} == {large.definition.hash, small.definition.hash}
    assert [a.bottleneck for a in attempts if a.remeasured] == [large.definition.hash]
    assert len(result.wins) == 1
    assert bench.referee.deadlines[-1] == 120.0, "a first verdict has the same end"


@pytest.mark.parametrize("bench", [Budget(), Budget(minutes=60)], indirect=True)
def test_a_kill_after_the_second_measurement_loses_neither_promotion_nor_outcome(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, script = [0.0], {"a": [{"speed": 3.0, "noisy": 1}]}
    recorded = bench.knowledge.record

    def killed(*args: Any, **parent: Any) -> str | None:
        if full(bench) == 2:
            now[0] = 3600.0  # the minutes are used up, so that a resume begins nothing new
            raise MemoryError
        return recorded(*args, **parent)

    with monkeypatch.context() as patch, pytest.raises(MemoryError):
        patch.setattr(bench.knowledge, "record", killed)
        bench.search(profile(bottleneck("a")), script, clock=lambda: now[0])
    assert bench.store.promotions("run") == ()
    assert len(bench.search(profile(bottleneck("a")), script, clock=lambda: now[0]).wins) == 1
    assert full(bench) == 2, "it is not measured a third time"
    assert len(bench.store.promotions("run")) == 1
    assert bench.knowledge.recorded == [("strategy-0", True, False), ("strategy-0", True, True)]


@pytest.mark.parametrize("bench", [Budget(attempts=1)], indirect=True)
@pytest.mark.parametrize("in_time", [0, 1])
def test_at_the_runs_own_limit_nothing_is_measured_again(bench: Bench, in_time: int) -> None:
    now = [0.0]

    def slow(solution: Solution, level: Level) -> None:
        if full(bench) == in_time and level is Level.FULL:
            now[0] = 570.0
            if in_time:
                raise TimeEnded("the run's time ended")

    bench.referee.before = slow
    script = {"a": [{"speed": 3.0, "noisy": 9}]}
    assert not bench.search(profile(bottleneck("a")), script, clock=lambda: now[0], limit_s=600.0).wins
    assert [a.remeasured for a in bench.store.attempts("run")] == [0]
    assert bench.referee.deadlines == [570.0] * (2 + in_time)
