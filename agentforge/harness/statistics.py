"""Paired ratios of interleaved blocks and their bootstrap intervals.

Reference: Kalibera and Jones, Rigorous benchmarking in reasonable time, ISMM 2013; Efron and Tibshirani,
An introduction to the bootstrap, 1993 (percentile interval).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from agentforge.schema import Interval

from .scores import geometric_mean

CONTROL_SLACK = 0.10
"""How far from 1 the A/A' control's interval may lie."""

_RESAMPLES = 2000
_WIDEST = 5
_BOOTSTRAP_SEED = 20_260_101
"""Fixed: the interval of given numbers is a function of the numbers."""


def ratio_interval(baseline_s: Sequence[float], solution_s: Sequence[float]) -> Interval:
    """Median of paired ratios baseline / solution with its 95% bootstrap interval.

    Args:
        baseline_s: seconds, one entry a block.
        solution_s: seconds of the same blocks.

    Raises:
        ValueError: no blocks, different lengths, or a time that is not positive.
    """
    a, b = np.asarray(baseline_s, dtype=float), np.asarray(solution_s, dtype=float)
    if a.size == 0 or a.shape != b.shape or not (np.all(a > 0) and np.all(b > 0)):
        raise ValueError("paired times must be positive and of the same number")
    logs: NDArray[np.float64] = np.log(a / b)
    random = np.random.default_rng(_BOOTSTRAP_SEED)
    samples = np.median(random.choice(logs, size=(_RESAMPLES, logs.size)), axis=1)
    low, high = np.percentile(samples, (2.5, 97.5))
    point = float(np.median(logs))
    return Interval(
        point=float(np.exp(point)), low=float(np.exp(min(low, point))), high=float(np.exp(max(high, point)))
    )


def undisturbed(seconds: Mapping[str, Sequence[float]], factor: float) -> list[int]:
    """Blocks in which nobody was slower than `factor` times its own median.

    Something else that takes a processor for a while makes a threaded call many times slower, and one such
    block among six moves a bootstrap interval's end by a factor. Every party is held to the same rule, and a
    median over all blocks is hardly moved by leaving out fewer than half of them.

    Args:
        seconds: by party, one entry a block.
        factor: above 1.

    Returns:
        Numbers of those blocks; all where more than half were disturbed: then that is how this machine, or
        this candidate, is.
    """
    rows = np.array([list(series) for series in seconds.values()], dtype=float)
    usual = np.median(rows, axis=1, keepdims=True)
    calm = np.flatnonzero(np.all(rows <= factor * usual, axis=0))
    return [int(i) for i in calm] if 2 * calm.size >= rows.shape[1] else list(range(rows.shape[1]))


def envelope(groups: Sequence[Interval]) -> Interval:
    """One interval over independent process groups: it covers every group's own.

    Between processes the effect moves by more than a group's interval shows, so the ends are the lowest
    low and the highest high; the point is the geometric mean.

    Raises:
        ValueError: no groups.
    """
    if not groups:
        raise ValueError("no groups")
    point = geometric_mean([g.point for g in groups])
    return Interval(point=point, low=min(g.low for g in groups), high=max(g.high for g in groups))


def minimum_effect(control: Interval) -> float:
    """Smallest speedup beyond 1 that could have been told from none, by the A/A' control."""
    return float(max(control.high, 1 / control.low if control.low > 0 else np.inf) - 1)


def holds_one(controls: Sequence[Interval], slack: float) -> bool:
    """Whether an A/A' control is 1 inside the noise: its envelope widened by `slack` contains 1.

    An interval so wide that it would contain anything says nothing and does not hold. That is asked of each
    group: the envelope of several is wide where processes differ, which every speedup's interval then shows.

    Args:
        controls: of the process groups.
        slack: by which a group's interval may miss 1; five times over, how wide it may be.
    """
    whole = envelope(controls)
    wide = any(c.high > c.low * (1 + slack) ** _WIDEST for c in controls)
    return not wide and whole.low / (1 + slack) <= 1 <= whole.high * (1 + slack)
