"""Paired ratios of interleaved blocks, their intervals, and when there are enough of them.

- *Between calls.* Workers take turns in random order, so a block's log ratio is above the true one as often
  as below, also under autocorrelated, heavy-tailed noise. The signed-rank interval needs no more.
- *Between processes.* A t interval over the estimates of fresh process groups.
- *The machine.* The largest deviation of the A/A' control from 1 moves both ends of every interval outwards.

A group may stop as soon as its own interval has decided (`enough`); each look spends a part of the error of
the signed-rank interval.

Reference: Kalibera and Jones, Rigorous benchmarking in reasonable time, ISMM 2013; Hodges and Lehmann,
Estimates of location based on rank tests, 1963; Jennison and Turnbull, Group sequential methods, 1999.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from agentforge.schema import Interval

CONTROL_SLACK = 0.10
"""How far from 1 the A/A' control of a steady process group may lie."""
LOOKS = (8, 12, 16, 20, 24)
"""Numbers of blocks after which a process group may stop."""

_ERROR = 0.05
"""Share of intervals that do not contain the true ratio."""
_LOOK_ERROR = _ERROR / len(LOOKS)
_PRECISE = math.log(1.08)
"""Width of a log interval around 1 that is enough: about the same."""
_WIDE = math.log(1.6)
"""Width of a log interval that says nothing, unless 1 lies outside."""

Logs = NDArray[np.float64]


def log_ratios(baseline_s: Sequence[float], solution_s: Sequence[float]) -> Logs:
    """Logarithms of baseline / solution.

    Raises:
        ValueError: no blocks, different lengths, or a time that is not positive.
    """
    a, b = np.asarray(baseline_s, dtype=float), np.asarray(solution_s, dtype=float)
    if a.size == 0 or a.shape != b.shape or not (np.all(a > 0) and np.all(b > 0)):
        raise ValueError("paired times must be positive and of the same number")
    logs: Logs = np.log(a / b)
    return logs


def rank_interval(logs: Logs, error: float) -> tuple[float, float, float]:
    """Hodges-Lehmann estimate with its signed-rank interval: point, low, high.

    Args:
        error: share of intervals that may miss. Too few blocks for it give their range.
    """
    rows, columns = np.triu_indices(logs.size)
    means = np.sort((logs[rows] + logs[columns]) / 2)
    outside = int(np.searchsorted(2 * _rank_sums(logs.size), error, side="right"))
    cut = max(1, outside)
    return float(np.median(means)), float(means[cut - 1]), float(means[-cut])


@cache
def _rank_sums(blocks: int) -> Logs:
    """Distribution function of the signed-rank statistic if signs are random."""
    counts = np.zeros(blocks * (blocks + 1) // 2 + 1)
    counts[0] = 1.0
    for rank in range(1, blocks + 1):
        more = counts.copy()
        more[rank:] += counts[:-rank]
        counts = more / 2
    return np.cumsum(counts)


def enough(logs: Logs) -> bool:
    """Whether the interval of this process group has decided: faster, slower, or about the same.

    More blocks would add little: the width of the final interval comes from differences between processes.
    """
    _, low, high = rank_interval(logs, _LOOK_ERROR)
    return low > 0 or high < 0 or high - low <= _PRECISE


def speedup(groups: Sequence[Logs], controls: Sequence[Logs] = ()) -> Interval:
    """Ratio over all process groups with its 95% interval; of fewer than six blocks it covers less.

    Args:
        controls: log ratios of the A/A' control in the same groups; they widen the interval.

    Raises:
        ValueError: no groups.
    """
    if not groups:
        raise ValueError("no groups")
    points = np.array([rank_interval(g, _ERROR)[0] for g in groups])
    point = float(points.mean())
    _, low, high = rank_interval(np.concatenate(groups), _LOOK_ERROR if len(groups) > 2 else _ERROR)
    if len(groups) > 2:
        half = float(stdtrit(len(groups) - 1, 1 - _ERROR / 2) * points.std(ddof=1)) / math.sqrt(len(groups))
        low, high = min(low, point - half), max(high, point + half)
    by = math.log(deviation(controls))
    low, high = min(low, point) - by, max(high, point) + by
    return Interval(point=math.exp(point), low=math.exp(low), high=math.exp(high))


def deviation(controls: Sequence[Logs]) -> float:
    """Largest factor by which the same baseline differed from itself in a process group; at least 1."""
    return math.exp(max((abs(rank_interval(c, _ERROR)[0]) for c in controls), default=0.0))


def steady(control: Logs) -> bool:
    """Whether the A/A' control of one process group is 1 within the noise, and says something."""
    _, low, high = rank_interval(control, _ERROR)
    slack = math.log(1 + CONTROL_SLACK)
    return high - low <= _WIDE and low - slack <= 0 <= high + slack


def control_steady(seconds: Mapping[str, Sequence[float]]) -> bool:
    """Whether the same baseline in two processes takes the same time; seconds by worker, for each block."""
    return steady(log_ratios(seconds["eager"], seconds["control"]))


def all_enough(seconds: Mapping[str, Sequence[float]]) -> bool:
    """Whether the speedup over every baseline is measured well enough; seconds by worker, for each block."""
    baselines = [series for name, series in seconds.items() if name not in ("candidate", "control")]
    return all(enough(log_ratios(series, seconds["candidate"])) for series in baselines)


def of_few_blocks(blocks: int) -> str:
    """What the range of fewer than six blocks covers, as a part of a sentence; empty for more blocks."""
    covered = 1 - 2.0 ** (1 - blocks)
    if covered >= 1 - _ERROR:
        return ""
    return f", and the interval of its {blocks} blocks covers {covered:.1%} instead of {1 - _ERROR:.0%}"


def undecided(interval: Interval) -> bool:
    """Whether an interval says neither faster nor slower nor about the same."""
    return interval.low <= 1 <= interval.high and math.log(interval.high / interval.low) > _WIDE


def undisturbed(seconds: Mapping[str, Sequence[float]], factor: float) -> list[int]:
    """Blocks in which no worker was slower than `factor` times its own median.

    Returns:
        Numbers of those blocks; all if more than half were disturbed.
    """
    rows = np.array([list(series) for series in seconds.values()], dtype=float)
    usual = np.median(rows, axis=1, keepdims=True)
    calm = np.flatnonzero(np.all(rows <= factor * usual, axis=0))
    return [int(i) for i in calm] if 2 * calm.size >= rows.shape[1] else list(range(rows.shape[1]))


def minimum_effect(control: Interval) -> float:
    """Smallest speedup beyond 1 that the A/A' control lets us distinguish from none."""
    return float(max(control.high, 1 / control.low if control.low > 0 else np.inf) - 1)


def geometric_mean(values: Sequence[float], weights: Sequence[float] | None = None) -> float:
    """Geometric mean of positive numbers.

    Args:
        weights: how often each counts; None for once.

    Raises:
        ValueError: no values, one that is not positive and finite, or weights that do not fit.
    """
    require_times(*values)
    counts = [1.0] * len(values) if weights is None else list(weights)
    if len(counts) != len(values) or not sum(counts) > 0 or any(w < 0 for w in counts):
        raise ValueError("the geometric mean needs values, and a weight for each")
    return math.exp(math.fsum(w * math.log(v) for w, v in zip(counts, values, strict=True)) / sum(counts))


def require_times(*values: float) -> None:
    """Check times or ratios.

    Raises:
        ValueError: one is not positive and finite.
    """
    if not all(math.isfinite(v) and v > 0 for v in values):
        raise ValueError("times and ratios must be positive and finite")
