"""The reward's order, and the composite's limits."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentforge.schema import (
    Evaluation,
    EvaluationStatus,
    Interval,
    ResourceUsage,
)
from agentforge.search.reward import BASELINE, WEIGHT, hardware_terms, reward_of, speed_reward
from tests.store import nouns

FAILURES = sorted(set(EvaluationStatus) - {EvaluationStatus.PASSED})


def evaluation(
    point: float = 1.0,
    low: float | None = None,
    high: float | None = None,
    *,
    status: EvaluationStatus = EvaluationStatus.PASSED,
    timed: bool = True,
    sol: float = 0.0,
    spilled: int = 0,
    occupancy: float | None = None,
    own_share: float | None = None,
) -> Evaluation:
    """A verdict; `sol` is its share of the speed of light."""
    passed = status is EvaluationStatus.PASSED
    interval = Interval(point=point, low=point if low is None else low, high=point if high is None else high)
    usage = ResourceUsage(
        kernel="k", target="sm_90", registers=32, spill_store_bytes=spilled, occupancy=occupancy
    )
    timing = nouns.performance(point, speedup={"eager": interval}, sol_s=sol or None)
    return nouns.evaluation(
        status=status,
        performance=timing if passed and timed else None,
        own_share=own_share,
        resources=(usage,),
    )


shares = st.floats(0.0, 1.0)


@st.composite
def passed(draw: st.DrawFn) -> Evaluation:
    low, point, high = sorted(draw(st.floats(0.01, 100.0)) for _ in range(3))
    return evaluation(
        point,
        low,
        high,
        sol=draw(shares),
        spilled=draw(st.integers(0, 64)),
        occupancy=draw(st.none() | shares),
        own_share=draw(st.none() | shares),
    )


parents = st.none() | passed() | st.sampled_from(FAILURES).map(lambda status: evaluation(status=status))
limits = st.floats(0.1, 1e6) | st.just(math.inf)


@given(passed(), parents, passed(), parents, limits)
def test_the_composite_never_reverses_results_whose_intervals_do_not_overlap(
    one: Evaluation,
    its_parent: Evaluation | None,
    other: Evaluation,
    others_parent: Evaluation | None,
    limit: float,
) -> None:
    assert one.performance and other.performance
    first, second = one.performance.speedup["eager"], other.performance.speedup["eager"]
    slow, fast = reward_of(one, its_parent, limit=limit), reward_of(other, others_parent, limit=limit)
    if second.high < first.low:
        slow, fast = fast, slow
    if first.high < second.low or second.high < first.low:
        assert slow <= fast


@given(passed(), parents, limits, st.sampled_from(FAILURES))
def test_a_reward_is_between_0_and_1_and_a_pass_is_worth_more_than_a_failure(
    one: Evaluation, parent: Evaluation | None, limit: float, status: EvaluationStatus
) -> None:
    failed = reward_of(evaluation(status=status), parent, limit=limit)
    assert 0.0 <= failed <= 0.1 < reward_of(one, parent, limit=limit) <= 1.0


def test_a_failure_is_worth_more_the_further_it_came() -> None:
    status = EvaluationStatus
    came = (
        status.CHEATING,
        status.COMPILE_ERROR,
        status.CRASHED,
        status.INCORRECT_SHAPE,
        status.INCORRECT_NUMERICAL,
    )
    worth = [reward_of(evaluation(status=one), limit=2.0) for one in came]
    assert worth == sorted(set(worth))
    assert reward_of(None, limit=2.0) == worth[0] == 0.0


WORTH = [(0.5, 0.15), (1.0, BASELINE), (2.0, 0.6), (4.0, 1.0), (9.0, 1.0)]


@pytest.mark.parametrize(("speedup", "worth"), WORTH)
def test_the_reward_of_a_speedup(speedup: float, worth: float) -> None:
    assert speed_reward(speedup, 4.0) == pytest.approx(worth)
    assert reward_of(evaluation(speedup), limit=4.0) == pytest.approx(worth)


def test_what_was_not_timed_is_worth_as_much_as_the_baseline() -> None:
    assert reward_of(evaluation(timed=False), limit=4.0) == BASELINE


def test_what_the_hardware_says_against_a_child() -> None:
    parent = evaluation(sol=0.5, occupancy=0.5, own_share=0.9)
    assert hardware_terms(evaluation(sol=0.7, occupancy=0.4, own_share=0.88), parent) == pytest.approx(0.01)
    for worse in (
        evaluation(sol=0.5, occupancy=0.5, spilled=8),
        evaluation(sol=0.5, occupancy=0.25),
        evaluation(sol=0.5, occupancy=0.5, own_share=0.8),
    ):
        assert hardware_terms(worse, parent) == pytest.approx(-WEIGHT)
    assert hardware_terms(evaluation(sol=0.9, spilled=8), None) == 0.0
    assert hardware_terms(evaluation(sol=0.9), evaluation(status=EvaluationStatus.CRASHED)) == 0.0


def test_the_composite_moves_within_the_interval_only() -> None:
    parent = evaluation(sol=0.5)
    wide, narrow = evaluation(2.0, 1.5, 2.6, sol=0.9), evaluation(2.0, sol=0.9)
    plain = speed_reward(2.0, 4.0)
    assert reward_of(wide, parent, limit=4.0) == pytest.approx(plain + WEIGHT * 0.4)
    assert reward_of(narrow, parent, limit=4.0) == pytest.approx(plain)
