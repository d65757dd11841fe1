from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentforge.harness.statistics import (
    envelope,
    holds_one,
    minimum_effect,
    ratio_interval,
    undisturbed,
)
from agentforge.schema import Interval

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


def test_the_envelope_covers_all_groups():
    groups = [Interval(point=2.0, low=1.8, high=2.1), Interval(point=1.5, low=1.4, high=1.9)]
    whole = envelope(groups)
    assert (whole.low, whole.high) == (1.4, 2.1)
    assert whole.point == pytest.approx((2.0 * 1.5) ** 0.5)
    with pytest.raises(ValueError):
        envelope([])


def test_what_a_control_says():
    assert holds_one([Interval(point=1.2, low=1.05, high=1.3)], 0.1)
    assert not holds_one([Interval(point=1.5, low=1.3, high=1.7)], 0.1)
    assert not holds_one([Interval(point=0.5, low=0.4, high=0.6)], 0.1)
    assert not holds_one([Interval(point=1.0, low=0.5, high=2.0)], 0.1)
    # Two processes that differ, each measured well: the envelope is wide, and says so.
    assert holds_one([Interval(point=0.8, low=0.7, high=0.9), Interval(point=1.1, low=1.0, high=1.2)], 0.1)
    assert minimum_effect(Interval(point=1.0, low=0.8, high=1.1)) == pytest.approx(0.25)
