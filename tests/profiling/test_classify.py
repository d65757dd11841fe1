"""Classes by rules; every rule cites what decided."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentforge.profiling import classify as c
from agentforge.profiling.classify import by_counters, by_roofline, values_of
from agentforge.schema import Bound, Metric

LONG = {c.DURATION: 1e6}
STALL = f"{c.STALL_PREFIX}long_scoreboard{c.STALL_SUFFIX}"
WAIT = f"{c.STALL_PREFIX}wait{c.STALL_SUFFIX}"
SELECTED = f"{c.STALL_PREFIX}selected{c.STALL_SUFFIX}"


@pytest.mark.parametrize(
    ("values", "bound", "cited"),
    [
        ({c.DURATION: 2000.0, c.DRAM_PCT: 90.0}, Bound.OVERHEAD, {c.DURATION}),
        ({**LONG, c.KERNEL_TIME_SHARE: 0.2, c.DRAM_PCT: 90.0}, Bound.OVERHEAD, {c.KERNEL_TIME_SHARE}),
        (
            {**LONG, c.DRAM_PCT: 92.0, c.MEMORY_PCT: 92.0, c.SM_PCT: 20.0},
            Bound.MEMORY,
            {c.DRAM_PCT, c.MEMORY_PCT},
        ),
        ({**LONG, c.DRAM_PCT: 16.0, c.MEMORY_PCT: 99.0, c.SM_PCT: 50.0}, Bound.MEMORY, {c.MEMORY_PCT}),
        ({**LONG, c.MEMORY_PCT: 72.4, c.SM_PCT: 72.4}, Bound.MEMORY, {c.MEMORY_PCT, c.SM_PCT}),
        ({**LONG, c.MEMORY_PCT: 62.0, c.SM_PCT: 95.0}, Bound.COMPUTE, {c.SM_PCT, c.MEMORY_PCT}),
        ({**LONG, c.TENSOR_PCT: 80.0, c.MEMORY_PCT: 50.0, c.SM_PCT: 55.0}, Bound.COMPUTE, {c.TENSOR_PCT}),
        ({**LONG, c.MEMORY_PCT: 20.0, c.SM_PCT: 20.0, c.WAVES: 0.4}, Bound.OCCUPANCY, {c.WAVES}),
        ({**LONG, c.MEMORY_PCT: 20.0, c.SM_PCT: 20.0, c.WARPS_PCT: 10.0}, Bound.OCCUPANCY, {c.WARPS_PCT}),
        (
            {
                **LONG,
                c.MEMORY_PCT: 30.0,
                c.SM_PCT: 20.0,
                c.WARPS_PCT: 80.0,
                STALL: 9.0,
                WAIT: 2.0,
                SELECTED: 99.0,
            },
            Bound.LATENCY,
            {c.MEMORY_PCT, c.SM_PCT, c.WARPS_PCT, STALL},
        ),
    ],
)
def test_by_counters(values: dict[str, float], bound: Bound, cited: set[str]):
    found = by_counters(values, kernel="k")
    assert found is not None
    assert found.bound is bound
    assert {r.metric for r in found.reasons} == cited
    assert all(r.value == values[r.metric] for r in found.reasons)
    assert (found.kernel, found.source) == ("k", "ncu")


@pytest.mark.parametrize(
    ("memory", "compute", "waves", "warps", "bound"),
    [
        (67.1, 25.4, 9.0, 93.7, Bound.MEMORY),  # High Memory Throughput: a row-wise norm, H100
        (89.2, 21.9, 9.0, 91.7, Bound.MEMORY),  # High Throughput: the same with vector loads
        (99.4, 66.3, 71.9, 99.6, Bound.MEMORY),  # High Throughput: a naive product, H100
        (49.0, 69.0, 2.0, 43.4, Bound.COMPUTE),  # High Compute Throughput: random numbers, GH200
        (57.6, 65.4, 1.9, 29.7, Bound.COMPUTE),  # Balanced Throughput: cuBLAS' product, RTX 3080
        (36.7, 32.0, 1.1, 78.9, Bound.LATENCY),  # Latency Issue: a short norm, H100
        (48.4, 16.1, 11.3, 96.7, Bound.LATENCY),  # Latency Issue
        (56.4, 37.6, 0.94, 16.7, Bound.OCCUPANCY),  # Small Grid: a product of 460 us
        (22.8, 22.8, 0.18, 24.9, Bound.OCCUPANCY),  # Small Grid: cuBLAS' product, RTX 2080 Ti
        (46.0, 23.3, 51.2, 24.9, Bound.OCCUPANCY),  # Latency Issue, and its cause
    ],
)
def test_it_agrees_with_ncus_own_rule(
    memory: float, compute: float, waves: float, warps: float, bound: Bound
):
    """Measurements of public reports, with the title that their rule `SOLBottleneck` gave them."""
    values = {c.MEMORY_PCT: memory, c.SM_PCT: compute, c.WAVES: waves, c.WARPS_PCT: warps}
    found = by_counters({**LONG, **values})
    assert found is not None
    assert found.bound is bound


def test_too_little_to_tell():
    assert by_counters({}) is None
    assert by_counters({c.DURATION: 1e6, c.SM_PCT: 20.0}) is None  # memory may be saturated
    assert by_roofline({}) is None
    assert by_roofline({c.CALL_OVERHEAD_SHARE: 0.01}) is None


@pytest.mark.parametrize(
    ("values", "bound"),
    [
        ({c.CALL_OVERHEAD_SHARE: 0.5, c.BANDWIDTH_SHARE: 0.9}, Bound.OVERHEAD),
        ({c.BANDWIDTH_SHARE: 0.7, c.THREADS_SHARE: 0.3}, Bound.MEMORY),
        ({c.BANDWIDTH_SHARE: 0.2, c.RATE_SHARE: 0.8}, Bound.COMPUTE),
        ({c.BANDWIDTH_SHARE: 0.2, c.RATE_SHARE: 0.1, c.THREADS_SHARE: 0.25}, Bound.OCCUPANCY),
        ({c.BANDWIDTH_SHARE: 0.2, c.RATE_SHARE: 0.1, c.THREADS_SHARE: 1.0}, Bound.LATENCY),
    ],
)
def test_by_roofline(values: dict[str, float], bound: Bound):
    found = by_roofline(values)
    assert found is not None
    assert found.bound is bound


NAMES = (c.DURATION, c.MEMORY_PCT, c.DRAM_PCT, c.SM_PCT, c.TENSOR_PCT, c.WARPS_PCT, c.WAVES, c.ISSUED_PCT)


@settings(derandomize=True, deadline=None, max_examples=200)
@given(st.dictionaries(st.sampled_from(NAMES), st.floats(0, 100)))
def test_every_reason_holds(values: dict[str, float]):
    found = by_counters(values)
    for reason in found.reasons if found else ():
        assert (reason.value >= reason.threshold) is (reason.relation == "at least")
        assert reason.value == values[reason.metric]


def test_it_reads_as_a_sentence():
    found = by_roofline({c.BANDWIDTH_SHARE: 0.7})
    assert str(found) == "memory-bound: bandwidth_share 0.7 is at least 0.6"
    assert Bound.OCCUPANCY.adjective == "under-occupied"
    assert Bound.OVERHEAD.adjective == "launch-bound"


def test_values_of_a_kernel():
    metrics = [
        Metric(name="a", value=1),
        Metric(name="b", value=2, kernel="k"),
        Metric(name="b", value=3, kernel="l"),
    ]
    assert values_of(metrics, "k") == {"a": 1, "b": 2}
    assert values_of(metrics) == {"a": 1}
