"""One reward in [0, 1] for all policies: what failed, how fast it is, and what the hardware says of it.

The hardware terms are a composite after OptiML; its weights were not published, so these are our own. They
move a reward only within what the measurement leaves open: between the rewards of the interval's ends. So
the composite never reverses two results whose intervals do not overlap.
"""

from __future__ import annotations

import math

from agentforge.schema import BestBaseline, Evaluation, EvaluationStatus

FAILED = {
    EvaluationStatus.CHEATING: 0.0,
    EvaluationStatus.COMPILE_ERROR: 0.02,
    EvaluationStatus.INCORRECT_SHAPE: 0.08,
    EvaluationStatus.INCORRECT_DTYPE: 0.08,
    EvaluationStatus.INCORRECT_NUMERICAL: 0.1,
    EvaluationStatus.NONDETERMINISTIC: 0.1,
}
"""By how far it came; other failures built and then broke: `BROKEN`."""

BROKEN = 0.05

BASELINE = 0.2
"""Reward of a solution that is as fast as the best baseline, and of one that is right and was not timed."""

LEAST_LIMIT, MOST_LIMIT = 1.05, 1000.0
"""Bounds of the speedup that counts as 1.0."""

WEIGHT = 0.05
"""Of each hardware term."""

OWN_SHARE_FELL = 0.05
"""Share of the time in own kernels that a child may lose before that counts against it."""


def speed_reward(speedup: float, limit: float) -> float:
    """Reward of a passed solution, 0.1 to 1, never falling with `speedup`.

    Args:
        speedup: over the best baseline.
        limit: speedup over eager that can be expected to be reachable. Where a compiled baseline is faster
            than eager, a kernel at the reachable time has less than 1 (docs/search.md).
    """
    if speedup < 1.0:
        return BASELINE / 2 * (1.0 + max(0.0, speedup))
    reachable = min(max(limit, LEAST_LIMIT), MOST_LIMIT)
    return BASELINE + (1.0 - BASELINE) * min(1.0, math.log(speedup) / math.log(reachable))


def reward_of(
    evaluation: Evaluation | None,
    parent: Evaluation | None = None,
    *,
    limit: float,
    best: BestBaseline = BestBaseline(),
) -> float:
    """Reward of a finished attempt; 0 if it has no evaluation.

    Args:
        parent: of the attempt that it builds on.
        limit: speedup over eager that can be expected to be reachable; the same for all attempts of a tree.
        best: the best baseline; the same for all attempts of a tree.
    """
    if evaluation is None:
        return 0.0
    if not evaluation.passed:
        return FAILED.get(evaluation.status, BROKEN)
    interval = best.interval(evaluation)
    if interval is None:
        return BASELINE
    own = speed_reward(interval.point, limit) + hardware_terms(evaluation, parent)
    return min(max(own, speed_reward(interval.low, limit)), speed_reward(interval.high, limit))


def gain_of(reward: float, parent: float = 0.0) -> float:
    """What an attempt gained over one before it and over a baseline, by their rewards: 0 to 0.8.

    Args:
        parent: reward of the attempt that it is compared with; 0 without one.
    """
    return max(0.0, reward - max(parent, BASELINE))


def hardware_terms(evaluation: Evaluation, parent: Evaluation | None) -> float:
    """Nearer to the speed of light than its parent, less what got worse: -0.1 to 0.05; 0 without a parent."""
    if parent is None or not parent.passed:
        return 0.0
    nearer = min(1.0, max(-1.0, _share(evaluation) - _share(parent)))
    return WEIGHT * nearer - WEIGHT * _worse(evaluation, parent)


def _share(evaluation: Evaluation) -> float:
    """Share of the speed of light, 0 to 1; 0 if it is not known."""
    performance = evaluation.performance
    if performance is None or not performance.sol_s or not performance.latency_s:
        return 0.0
    return min(1.0, performance.sol_s / performance.latency_s)


def _worse(evaluation: Evaluation, parent: Evaluation) -> bool:
    """Whether registers spill that did not, occupancy halved, or own kernels do less of the work."""
    occupied, before = _occupancy(evaluation), _occupancy(parent)
    halved = occupied is not None and before is not None and occupied <= before / 2
    now, then = evaluation.own_share, parent.own_share
    fell = now is not None and then is not None and now < then - OWN_SHARE_FELL
    return _spilled(evaluation) > _spilled(parent) or halved or fell


def _spilled(evaluation: Evaluation) -> int:
    """Bytes that the worst kernel spills."""
    return max((r.spill_store_bytes + r.spill_load_bytes for r in evaluation.resources), default=0)


def _occupancy(evaluation: Evaluation) -> float | None:
    """Of the least occupied kernel."""
    return min((r.occupancy for r in evaluation.resources if r.occupancy is not None), default=None)
