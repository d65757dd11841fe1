"""Deferred work is distinguished from a loaded machine: one slow read accuses no candidate."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from agentforge.referee.timing.deferred_work import TELLING, Lateness, Overhead, Overheads
from agentforge.referee.workers.failures import WorkerFailure

CALL_S, READ_S = 1e-3, 2e-3


def seen(seed: int, *, late_s: float = 0.0, disturbed: float = 0.0, turns: int = TELLING) -> Overhead:
    """Turns of two parties. A share of them is disturbed for some ten milliseconds.

    Args:
        seed: of the noise.
        late_s: work that the candidate puts off.
        disturbed: share of turns.
        turns: of each party.
    """
    random, beside = Random(seed), Overhead("{} against {}")
    for _ in range(turns):
        for candidate in (True, False):
            noise = random.expovariate(1 / 10e-3) if random.random() < disturbed else 0.0
            late = late_s if candidate else 0.0
            calls = [
                (CALL_S + noise * random.random(), READ_S + late + noise * random.uniform(0.8, 1))
                for _ in range(5)
            ]
            beside.add(candidate, calls)
    return beside


@pytest.mark.parametrize("disturbed", [0.1, 0.3, 0.5, 0.7, 1.0])
@pytest.mark.parametrize("turns", [TELLING, 2 * TELLING])
def test_a_disturbed_machine_accuses_nobody(disturbed: float, turns: int) -> None:
    told = Counter(seen(seed, disturbed=disturbed, turns=turns).lateness() for seed in range(500))
    assert not told[Lateness.CERTAIN]


@pytest.mark.parametrize("late_s", [5e-4, 5e-3])
def test_work_that_is_put_off_is_told_where_it_is_quiet(late_s: float) -> None:
    for seed in range(50):
        assert seen(seed, late_s=late_s).lateness() is Lateness.CERTAIN
    assert "7.00 ms against 2.00 ms" in seen(0, late_s=5e-3).found()


@pytest.mark.parametrize("disturbed", [0.1, 0.3, 0.5])
def test_work_that_is_put_off_does_not_hide_in_noise(disturbed: float) -> None:
    told = Counter(seen(seed, late_s=5e-3, disturbed=disturbed).lateness() for seed in range(200))
    assert told[Lateness.NONE] <= 2


@pytest.mark.parametrize("late_s", [0.0, 1e-3])
def test_processor_time_after_the_answer_is_deferred_work(late_s: float) -> None:
    overheads = Overheads(1 << 20)
    for _ in range(TELLING):
        for candidate in (True, False):
            late = late_s if candidate else 0.0
            overheads.add_turn(candidate, [CALL_S], [(CALL_S, READ_S, 0.0, late)] * 3, readable=True)
    assert overheads.late.excess_s() == late_s
    if late_s:
        with pytest.raises(WorkerFailure, match="until its threads stop"):
            list(overheads.doubts(Overhead(""), often_disturbed=True))
    else:
        assert not list(overheads.doubts(Overhead(""), often_disturbed=True))


def test_work_put_off_in_those_calls_that_count_is_told() -> None:
    beside = Overhead("{} {}")
    for _ in range(TELLING):
        beside.add(True, [(CALL_S, READ_S), (CALL_S, READ_S), *[(CALL_S / 10, READ_S + 5e-3)] * 3])
        beside.add(False, [(CALL_S, READ_S)] * 5)
    assert beside.lateness() is Lateness.CERTAIN


def test_few_turns_ask_for_more_and_accuse_nobody() -> None:
    few = seen(0, late_s=5e-3, turns=TELLING - 1)
    assert few.lateness() is Lateness.UNKNOWN and few.undecided
    assert not seen(0, late_s=5e-3).undecided
    assert not seen(0, turns=4).undecided


def test_what_may_stand_beside_a_call() -> None:
    for slack, expected in ((0.0, Lateness.CERTAIN), (1e-3, Lateness.NONE)):
        beside = Overhead("{} {}", slack)
        for _ in range(TELLING):
            beside.add(True, [(CALL_S, READ_S + 9e-4)])
            beside.add(False, [(CALL_S, READ_S)])
        assert beside.lateness() is expected


@pytest.mark.parametrize(
    ("ours_s", "theirs_s", "expected"),
    [(9.9e-3, 9.4e-3, Lateness.NONE), (19e-3, 9e-3, Lateness.CERTAIN), (1.2e-3, 0.2e-3, Lateness.CERTAIN)],
)
def test_a_copy_to_the_device_may_take_a_little_longer(
    ours_s: float, theirs_s: float, expected: Lateness
) -> None:
    overheads = Overheads(1 << 20)
    for _ in range(TELLING):
        for candidate, beside in ((True, ours_s), (False, theirs_s)):
            overheads.add_turn(candidate, [2e-4], [(2e-4, 0.0, beside, 0.0)] * 3, readable=False)
    assert overheads.hidden.lateness() is expected


def test_without_turns_there_is_nothing_to_see() -> None:
    beside = Overhead("{} {}")
    beside.add(True, [])
    assert beside.lateness() is Lateness.NONE and not beside.undecided


def test_noise_of_the_reference_accuses_no_candidate() -> None:
    """The mean of a turn lies below its median as often as above it."""
    random, uneven = Random(0), Overhead("{} against {}")
    for _ in range(2 * TELLING):
        uneven.add(True, [(CALL_S, random.uniform(-0.05, 0.05) * CALL_S)])
        uneven.add(False, [(CALL_S, random.uniform(-2, 2) * CALL_S)])
    assert uneven.lateness() is Lateness.NONE


def test_the_excess_is_at_least_what_turns_show() -> None:
    uneven = Overhead("{} {}")
    assert uneven.excess_s() == 0.0
    for turn in range(16):
        uneven.add(True, [(1e-3, 3e-4 + 1e-5 * (turn % 4))])
        uneven.add(False, [(1e-3, 1e-4)])
    assert uneven.excess_s() == pytest.approx(2.1e-4, rel=0.1)
    noisy = Overhead("{} {}")
    for turn in range(16):
        noisy.add(True, [(1e-3, 5e-3 if turn % 3 == 0 else 1e-5)])
        noisy.add(False, [(1e-3, 1e-5)])
    assert noisy.excess_s() == 0.0, "a disturbance in some turns is no excess"


def with_unusual_calls(beside_s: list[float], *, turns: int = TELLING) -> Overheads:
    """Turns of seven usual calls and one with an unusual content, which takes the candidate longer."""
    overheads = Overheads(1 << 20)
    for turn in range(turns):
        for candidate in (True, False):
            extra = beside_s[turn % len(beside_s)] if candidate else 0.0
            timed = [(CALL_S, READ_S, 0.0, 0.0)] * 5
            overheads.add_turn(candidate, [CALL_S] * 7, timed, [CALL_S + extra], readable=True)
    return overheads


def test_work_of_usual_calls_that_is_done_in_every_unusual_one_counts() -> None:
    overheads = with_unusual_calls([7e-3])
    assert overheads.excess_s() == pytest.approx(1e-3)
    assert not list(overheads.doubts(Overhead(""), often_disturbed=False)), (
        "its time counts, and accuses nobody"
    )


def test_some_contents_may_take_longer() -> None:
    assert with_unusual_calls([7e-3, 0.0, 0.0]).excess_s() == 0.0
    assert with_unusual_calls([3e-4]).excess_s() == 0.0
    assert with_unusual_calls([7e-3], turns=3).excess_s() == 0.0, "few turns say nothing"


@pytest.mark.parametrize("turns", [4, 6, TELLING])
@pytest.mark.parametrize("disturbed", [0.1, 0.3, 0.5, 1.0])
def test_noise_in_unusual_calls_seldom_adds_time(disturbed: float, turns: int) -> None:
    added = 0
    for seed in range(200):
        random, overheads = Random(seed), Overheads(1 << 20)
        for _ in range(turns):
            for candidate in (True, False):
                noise = random.expovariate(1 / 1e-3) if random.random() < disturbed else 0.0
                timed = [(CALL_S, READ_S, 0.0, 0.0)] * 5
                overheads.add_turn(candidate, [CALL_S] * 7, timed, [CALL_S + noise], readable=True)
        added += overheads.excess_s() > 0
    assert added <= 4
