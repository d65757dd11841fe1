from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentforge.referee.timing.statistics import (
    deviation,
    log_ratios,
    minimum_effect,
    of_few_blocks,
    rank_interval,
    speedup,
    steady,
    undecided,
    undisturbed,
)
from agentforge.schema import Interval


def ratio_interval(baseline_s: Sequence[float], solution_s: Sequence[float]) -> Interval:
    return speedup([log_ratios(baseline_s, solution_s)])


TIMES = st.lists(st.floats(1e-6, 1e3), min_size=1, max_size=30)


@settings(max_examples=30, deadline=None)
@given(TIMES)
def test_a_series_against_itself_is_one(times):
    interval = ratio_interval(times, times)
    assert interval.low == interval.point == interval.high == pytest.approx(1.0)


@settings(max_examples=30, deadline=None)
@given(TIMES, st.floats(0.1, 10))
def test_the_interval_scales_and_inverts(times, factor):
    other = [t / factor for t in times]
    interval = ratio_interval(times, other)
    assert interval.point == pytest.approx(factor)
    assert ratio_interval(other, times).point == pytest.approx(1 / factor)


def test_the_interval_covers_the_truth_of_noisy_pairs():
    random = np.random.default_rng(0)
    drift = np.exp(np.cumsum(random.normal(0, 0.1, 60)))
    a, b = 2.0 * drift * random.lognormal(0, 0.05, 60), drift * random.lognormal(0, 0.05, 60)
    interval = ratio_interval(a, b)
    assert interval.low < 2.0 < interval.high
    assert interval.high / interval.low < 1.15


@pytest.mark.parametrize("pair", [([], []), ([1.0], [1.0, 2.0]), ([0.0], [1.0]), ([1.0], [float("nan")])])
def test_impossible_times_are_refused(pair):
    with pytest.raises(ValueError):
        ratio_interval(*pair)


def test_disturbed_blocks_are_left_out_unless_they_are_the_rule():
    calm = {"eager": [1.0, 1.1, 0.9, 26.0, 1.0, 1.0], "candidate": [0.5, 0.5, 4.0, 0.5, 0.6, 0.5]}
    assert undisturbed(calm, 1.5) == [0, 1, 4, 5]
    kept = [[series[i] for i in undisturbed(calm, 1.5)] for series in calm.values()]
    narrow, wide = ratio_interval(*kept), ratio_interval(*calm.values())
    assert narrow.high / narrow.low < 1.5 < wide.high / wide.low
    busy = {"eager": [1.0, 9.0, 1.0, 1.0, 9.0], "candidate": [2.0, 1.0, 8.0, 9.0, 1.0]}
    assert undisturbed(busy, 1.5) == [0, 1, 2, 3, 4]
    assert undisturbed({"eager": [1.0]}, 1.5) == [0]


def test_groups_that_differ_widen_the_interval() -> None:
    alike = speedup([log_ratios([r] * 8, [1.0] * 8) for r in (1.49, 1.5, 1.51)])
    apart = speedup([log_ratios([r] * 8, [1.0] * 8) for r in (1.2, 1.5, 1.8)])
    assert apart.low < alike.low < 1.49 < 1.51 < alike.high < apart.high
    assert alike.point == pytest.approx((1.49 * 1.5 * 1.51) ** (1 / 3))
    # Half the width of a t interval: 4.303 standard deviations over the root of three.
    logs = np.log([1.2, 1.5, 1.8])
    assert np.log(apart.point / apart.low) == pytest.approx(4.3027 * np.std(logs, ddof=1) / 3**0.5, rel=1e-3)
    with pytest.raises(ValueError):
        speedup([])


def test_a_control_that_is_off_widens_the_interval_and_decides_nothing_else() -> None:
    groups = [log_ratios([3.0] * 8, [1.0] * 8)] * 3
    off = [log_ratios([r] * 8, [1.0] * 8) for r in (0.8, 1.0, 1.1)]
    assert deviation(off) == pytest.approx(1 / 0.8)
    certain = speedup(groups, off)
    assert (certain.low, certain.high) == (pytest.approx(3 * 0.8), pytest.approx(3 / 0.8))
    assert certain.at_least == math.floor(100 * certain.low) / 100
    assert speedup(groups).at_least is None
    assert deviation([]) == 1.0


def test_what_a_control_says() -> None:
    assert steady(np.log([1.05, 1.06, 1.07, 1.08]))
    assert not steady(np.log([1.3, 1.4, 1.5, 1.6]))
    assert not steady(np.log([0.4, 0.5, 0.5, 0.6]))
    assert not steady(np.log([0.5, 0.9, 1.1, 2.0]))
    assert minimum_effect(Interval(point=1.0, low=0.8, high=1.1)) == pytest.approx(0.25)


@pytest.mark.parametrize(
    ("low", "high", "says_nothing"),
    [(0.5, 2.0, True), (0.95, 1.05, False), (1.1, 9.0, False), (0.1, 0.9, False)],
)
def test_what_decides_nothing(low: float, high: float, says_nothing: bool) -> None:
    assert undecided(Interval(point=(low * high) ** 0.5, low=low, high=high)) is says_nothing


def test_the_rank_interval_has_the_exact_error_of_random_signs() -> None:
    logs = np.array([-0.3, -0.1, 0.2, 0.4, 0.7, 0.8, 1.1, 1.3])
    means = sorted((a + b) / 2 for i, a in enumerate(logs) for b in logs[i:])
    point, low, high = rank_interval(logs, 2 / 256)
    assert (low, high) == (means[0], means[-1])
    assert point == pytest.approx(np.median(means))
    # The published table: at 8 pairs the two-sided 5 % region of the smaller rank sum is 0 to 3.
    assert rank_interval(logs, 0.05)[1:] == (means[3], means[-4])


@pytest.mark.parametrize(
    ("blocks", "said"),
    [(2, "50.0%"), (4, "its 4 blocks covers 87.5% instead of 95%"), (5, "93.8%"), (6, ""), (24, "")],
)
def test_few_blocks_say_what_their_range_covers(blocks: int, said: str) -> None:
    assert said in of_few_blocks(blocks)
    assert bool(of_few_blocks(blocks)) is bool(said)
    random = np.random.default_rng(1)
    draws = random.normal(0, 1, (4000, blocks))
    ends = np.array([rank_interval(row, 0.05)[1:] for row in draws])
    covered = np.mean((ends[:, 0] < 0) & (ends[:, 1] > 0))
    assert abs(covered - min(0.95, 1 - 2.0 ** (1 - blocks))) < 0.025 or covered >= 0.95
