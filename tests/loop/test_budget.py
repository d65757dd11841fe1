"""Budgets."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentforge.loop import BudgetMeter
from agentforge.schema import Budget


class Clock:
    """Stands until it is moved."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_minutes_count_over_sessions() -> None:
    clock = Clock()
    meter = BudgetMeter(Budget(minutes=2), seconds_used=90.0, clock=clock)
    assert meter.seconds == 90.0
    assert not meter.exhausted(dollars=0.0)
    clock.now += 30.0
    assert meter.exhausted(dollars=0.0) == "the budget of 2 minutes is used up"
    assert meter.left(dollars=0.0, attempts=0)["minutes"] == 0.0


def test_a_profile_takes_none_of_the_minutes() -> None:
    clock = Clock()
    meter = BudgetMeter(Budget(minutes=1), clock=clock)
    clock.now += 100.0
    assert meter.out_of_minutes
    meter.profiled(100.0)
    assert not meter.out_of_minutes
    assert meter.seconds == 100.0
    assert meter.left(dollars=0.0, attempts=0)["minutes"] == 1.0
    assert meter.deadline == clock.now + 60.0 + 15.0
    clock.now += 60.0
    assert meter.exhausted(dollars=0.0) == "the budget of 1 minutes is used up"


def test_stitching_takes_none_of_the_minutes_of_a_resumed_run() -> None:
    clock = Clock()
    meter = BudgetMeter(Budget(minutes=1), clock=clock)
    clock.now += 20.0
    meter.stitching_begins()
    clock.now += 100.0
    assert (meter.seconds, meter.stitched_s, meter.search_s) == (120.0, 100.0, 20.0)
    used = {"seconds_used": meter.seconds, "stitched_s": meter.stitched_s}
    again = BudgetMeter(Budget(minutes=1), **used, clock=clock)
    assert again.left(dollars=0.0, attempts=0)["minutes"] == pytest.approx(40 / 60)
    clock.now += 40.0
    assert again.exhausted(dollars=0.0) == "the budget of 1 minutes is used up"
    again.stitching_begins()
    clock.now += 5.0
    assert (again.seconds, again.stitched_s) == (165.0, 105.0)


def test_attempts_bound_new_attempts_only() -> None:
    meter = BudgetMeter(Budget(attempts=3))
    assert not meter.exhausted(dollars=0.0, attempts=2)
    assert "3 attempts" in meter.exhausted(dollars=0.0, attempts=3)
    assert not meter.exhausted(dollars=0.0)


@pytest.mark.parametrize(("limit", "spent", "over"), [(0.0, 0.0, False), (0.0, 0.01, True), (1.0, 1.0, True)])
def test_dollars(limit: float, spent: float, over: bool) -> None:
    """A limit of zero lets what costs nothing go on."""
    assert bool(BudgetMeter(Budget(dollars=limit)).exhausted(dollars=spent)) is over


def test_no_limit_never_ends() -> None:
    meter = BudgetMeter(Budget(), seconds_used=1e9)
    assert not meter.exhausted(dollars=1e9, attempts=10**9)
    assert set(meter.left(dollars=1.0, attempts=1).values()) == {None}


@given(st.floats(0.1, 1e4), st.floats(0, 1e6), st.integers(0, 1000), st.integers(0, 1000))
def test_what_is_left_is_never_negative(minutes: float, used: float, limit: int, made: int) -> None:
    meter = BudgetMeter(Budget(minutes=minutes, attempts=limit), seconds_used=used, clock=lambda: 0.0)
    left = meter.left(dollars=0.0, attempts=made)
    assert left["minutes"] is not None
    assert left["attempts"] is not None
    assert min(left["minutes"], left["attempts"]) >= 0.0
    assert bool(meter.exhausted(dollars=0.0, attempts=made)) == (used >= minutes * 60 or made >= limit)


def test_an_evaluation_in_progress_gets_a_quarter_of_the_minutes_more() -> None:
    clock = Clock()
    meter = BudgetMeter(Budget(minutes=2), seconds_used=90.0, clock=clock)
    assert meter.deadline == 100.0 + 30.0 + 30.0
    clock.now += 10.0
    assert meter.deadline == 160.0
    assert BudgetMeter(Budget(minutes=0.1), clock=clock).deadline == 110.0 + 6.0 + 10.0
    assert BudgetMeter(Budget(attempts=1)).deadline is None


def test_a_first_verdict_ends_with_twice_the_minutes_and_not_before_two() -> None:
    clock = Clock()
    meter = BudgetMeter(Budget(minutes=0.5), seconds_used=46.0, clock=clock)
    assert meter.deadline == meter.end(first=False) == clock.now - 46.0 + 30.0 + 10.0
    assert meter.end(first=True) == clock.now - 46.0 + 120.0
    clock.now += 50.0
    assert meter.end(first=True) == 100.0 - 46.0 + 120.0
    assert BudgetMeter(Budget(minutes=9), clock=clock).end(first=True) == clock.now + 1080.0
    assert BudgetMeter(Budget(attempts=1)).end(first=True) is None


def test_variants_begin_within_half_of_the_minutes_and_at_most_one() -> None:
    found = [BudgetMeter(Budget(minutes=m)).exploring_s for m in (0.5, 2, 12)]
    assert found == [15.0, 60.0, 60.0]
    assert BudgetMeter(Budget(attempts=3)).exploring_s == 60.0


def test_stitching_has_as_many_minutes_as_the_search_and_at_least_ten() -> None:
    found = [BudgetMeter(Budget(minutes=m)).stitching_s for m in (0.5, 5, 12)]
    assert found == [600.0, 600.0, 720.0]
    assert BudgetMeter(Budget(attempts=3)).stitching_s is None
    assert BudgetMeter(Budget(minutes=0.5), least_stitching_s=80.0).stitching_s == 80.0


def test_evaluations_and_stitching_end_before_the_limit_of_a_run() -> None:
    clock = Clock()
    meter = BudgetMeter(Budget(minutes=0.5), seconds_used=1000.0, limit_s=540.0, clock=clock)
    assert meter.end(first=True) == clock.now - 1000.0 + 120.0
    fresh = BudgetMeter(Budget(minutes=9), limit_s=540.0, clock=clock)
    assert fresh.end(first=True) == clock.now + 540.0 - 27.0
    assert BudgetMeter(Budget(attempts=1), limit_s=1e4, clock=clock).deadline == clock.now + 1e4 - 30.0
    assert meter.stitching_s == 540.0
    clock.now += 500.0
    assert meter.stitching_s == 40.0
    clock.now += 50.0
    assert meter.stitching_s == 0.0


def test_the_limit_of_a_run_ends_its_search() -> None:
    clock = Clock()
    meter = BudgetMeter(Budget(attempts=9), seconds_used=1000.0, limit_s=540.0, clock=clock)
    clock.now += 512.0
    assert not meter.exhausted(dollars=0.0)
    clock.now += 1.0
    assert meter.out_of_time
    assert meter.exhausted(dollars=0.0) == "the run's limit of 540 seconds is used up"
    assert not BudgetMeter(Budget(), clock=clock).out_of_time
