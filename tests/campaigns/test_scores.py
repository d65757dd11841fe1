"""Scores: by hand, and properties that hold for any times."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentforge.campaigns.scores import (
    ProblemScore,
    clipped_speedup,
    fast_p,
    geometric_mean,
    outcome,
    sol_score,
    summary,
    together,
)
from agentforge.schema import Evaluation, EvaluationStatus, Evidence, Interval, Performance
from tests.store.nouns import evaluation as some_evaluation

TIMES = st.floats(min_value=1e-9, max_value=1e3, allow_nan=False)
RATIOS = st.floats(min_value=1e-3, max_value=1e3, allow_nan=False)
stable = settings(derandomize=True, deadline=None, max_examples=200)


def test_fast_p_is_strict_and_counts_failures():
    speedups = [1.0, 1.5, 2.0, None]
    assert fast_p(speedups, 0) == 0.75
    assert fast_p(speedups, 1) == 0.5  # 1.0 is no win
    assert fast_p(speedups, 1.5) == 0.25
    assert fast_p([None, None], 0) == 0.0
    with pytest.raises(ValueError, match="no problems"):
        fast_p([], 1)


def test_sol_score_at_its_anchors():
    assert sol_score(4.0, 4.0, 1.0) == pytest.approx(0.5)
    assert sol_score(1.0, 4.0, 1.0) == 1.0
    assert sol_score(7.0, 4.0, 1.0) == pytest.approx(1 / 3)
    # Unguarded, this one is at the pole Tk = 2 Tsol - Tb.
    assert sol_score(0.5, 1.5, 1.0) == 1.0
    assert sol_score(1.0, 0.5, 1.0) == 1.0
    assert sol_score(2.0, 0.5, 1.0) == 0.0


@stable
@given(TIMES, TIMES, TIMES)
def test_sol_score_stays_in_its_range(solution: float, baseline: float, sol: float):
    assert 0.0 <= sol_score(solution, baseline, sol) <= 1.0


@stable
@given(TIMES, TIMES, TIMES, TIMES)
def test_a_slower_solution_never_scores_higher(a: float, b: float, baseline: float, sol: float):
    fast, slow = sorted((a, b))
    assert sol_score(fast, baseline, sol) >= sol_score(slow, baseline, sol)


@stable
@given(TIMES, TIMES, TIMES)
def test_nothing_beats_the_speed_of_light(solution: float, baseline: float, sol: float):
    assert clipped_speedup(baseline, solution, sol) <= baseline / sol * (1 + 1e-12)
    assert clipped_speedup(baseline, solution, sol) <= clipped_speedup(baseline, solution)


@pytest.mark.slow
@stable
@given(st.lists(RATIOS, min_size=1, max_size=20))
def test_the_geometric_mean_lies_between_and_inverts(values: list[float]):
    mean = geometric_mean(values)
    assert min(values) * (1 - 1e-9) <= mean <= max(values) * (1 + 1e-9)
    assert geometric_mean([1 / v for v in values]) == pytest.approx(1 / mean)
    assert geometric_mean(values, [2] * len(values)) == pytest.approx(mean)


@stable
@given(st.lists(st.one_of(st.none(), RATIOS), min_size=1, max_size=20), RATIOS, RATIOS)
def test_fast_p_falls_with_p_and_with_failures(speedups: list[float | None], p: float, q: float):
    low, high = sorted((p, q))
    assert fast_p(speedups, low) >= fast_p(speedups, high)
    assert fast_p([*speedups, None], low) <= fast_p(speedups, low)


@pytest.mark.parametrize("values", [[], [1.0, 0.0], [-1.0], [math.inf], [math.nan]])
def test_the_geometric_mean_refuses(values: list[float]):
    with pytest.raises(ValueError, match=r"positive|needs"):
        geometric_mean(values)


def test_times_that_are_none_are_refused():
    for bad in (0.0, -1.0, math.nan, math.inf):
        with pytest.raises(ValueError, match="positive"):
            sol_score(bad, 1.0, 1.0)
        with pytest.raises(ValueError, match="positive"):
            clipped_speedup(1.0, bad)


def test_a_summary_counts_failures():
    scores = summary(
        [
            ProblemScore(solution_s=1.0, baseline_s=2.0, sol_s=0.5),
            ProblemScore(solution_s=0.1, baseline_s=1.0, sol_s=0.5),  # below the speed of light: 2x, not 10x
            ProblemScore(sol_s=0.5),
            ProblemScore(solution_s=2.0, baseline_s=1.0),
        ]
    )
    assert (scores.problems, scores.failures, scores.sol_known) == (4, 1, 3)
    assert scores.geometric_mean_speedup == pytest.approx((2 * 2 * 0.5) ** (1 / 3))
    assert scores.fast["0"] == 0.75
    assert scores.fast["1"] == 0.5
    assert scores.fast["2"] == 0.0
    assert scores.sol_score == pytest.approx((0.75 + 1.0 + 0.0) / 3)


def test_all_failures_have_no_mean():
    scores = summary([ProblemScore(), ProblemScore(sol_s=1.0)])
    assert scores.geometric_mean_speedup is None
    assert scores.sol_score == 0.0
    assert scores.failures == 2


def _evaluation(**changes: object) -> Evaluation:
    performance = Performance(
        latency_s=1.0,
        baseline_s={"eager": 4.1, "compile": 2.1},
        speedup={
            "eager": Interval(point=4.0, low=3.9, high=4.1),
            "compile": Interval(point=2.0, low=1.9, high=2.1),
        },
        control=Interval(point=1.0, low=0.99, high=1.01),
        blocks=10,
        processes=3,
        sol_s=0.5,
    )
    base = {"status": EvaluationStatus.PASSED, "evidence": Evidence.VERIFIED, "performance": performance}
    return some_evaluation().model_copy(update={**base, **changes})


def test_only_a_verified_evaluation_is_a_solution():
    assert outcome(None).speedup is None
    assert outcome(_evaluation(evidence=Evidence.SUSPICIOUS)).speedup is None
    assert outcome(_evaluation()).speedup == pytest.approx(2.0)
    assert outcome(_evaluation(), baseline="eager").speedup == pytest.approx(4.0)
    assert outcome(_evaluation(), baseline="graph").speedup is None
    assert outcome(_evaluation()).sol_score == pytest.approx(0.75)


def _workload(solution: float, baseline: float, **more: float) -> ProblemScore:
    return ProblemScore(solution_s=solution, baseline_s=baseline, low=0.9 * baseline / solution, **more)


def test_several_workloads_have_the_geometric_mean_of_their_speedups() -> None:
    found = together([_workload(1.0, 2.0), _workload(1e-3, 8e-3)], "norm")
    assert found.passed
    assert found.problem == "norm"
    assert found.speedup == pytest.approx(4.0)
    assert found.speedup_low == pytest.approx(3.6)
    assert found.sol_s is None


def test_each_workload_is_limited_by_its_own_speed_of_light() -> None:
    workloads = [_workload(1.0, 4.0, sol_s=2.0), _workload(1.0, 8.0, sol_s=0.5)]
    found = together(workloads, "norm")
    assert found.speedup == pytest.approx((2.0 * 8.0) ** 0.5)
    assert found.speedup_low is not None
    assert found.speedup is not None
    assert found.speedup_low <= found.speedup


def test_a_definition_with_a_failed_workload_is_not_solved() -> None:
    found = together([_workload(1.0, 9.0), ProblemScore(kept=4.0)], "norm")
    assert not found.passed
    assert found.kept == pytest.approx(6.0)


def test_one_workload_is_itself() -> None:
    one = _workload(1.0, 3.0, sol_s=0.5)
    assert together([one], "x") == one.model_copy(update={"problem": "x"})
