"""What measured times are worth: speedups held against physics, fast_p, SOL score, geometric mean.

Every figure that sums up several problems is computed here and nowhere else. A failure is a problem without a
solution time: it counts against a figure, never as a speedup of 1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from pydantic import Field

from agentforge.schema import Evaluation, FrozenModel

THRESHOLDS = (0.0, 0.5, 0.8, 1.0, 1.5, 2.0)
"""The p of fast_p that KernelBench reports; fast_0 is the share of correct ones."""


class Outcome(FrozenModel):
    """What one problem came to."""

    problem: str = ""
    """Name or hash, for a reader."""
    solution_s: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """Seconds a call of the solution; None where it failed."""
    baseline_s: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """Seconds a call of the baseline that it is held against; None where nothing could be measured."""
    sol_s: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """Speed-of-light seconds; None where they are not known."""

    @property
    def passed(self) -> bool:
        """Whether it counts as solved: right, and timed beside a baseline."""
        return self.solution_s is not None and self.baseline_s is not None

    @property
    def speedup(self) -> float | None:
        """`clipped_speedup`; None for a failure."""
        if self.solution_s is None or self.baseline_s is None:
            return None
        return clipped_speedup(self.baseline_s, self.solution_s, self.sol_s)

    @property
    def sol_score(self) -> float | None:
        """`sol_score`, 0 for a failure; None where no speed of light is known."""
        if self.sol_s is None:
            return None
        if self.solution_s is None or self.baseline_s is None:
            return 0.0
        return sol_score(self.solution_s, self.baseline_s, self.sol_s)


class Scores(FrozenModel):
    """Several problems summed up."""

    problems: int
    failures: int
    """Of the problems, those without a right and timed solution."""
    fast: dict[str, float]
    """Share of all problems that pass and are more than p times as fast, by p as text: `1`, `1.5`."""
    geometric_mean_speedup: float | None
    """Of those that pass; None where none does. Meaningless without `failures` beside it."""
    sol_score: float | None
    """Mean over the problems whose speed of light is known, failures as 0; None where none is."""
    sol_known: int
    """Problems that the SOL score rests on."""


def outcome(evaluation: Evaluation | None, *, baseline: str | None = None, problem: str = "") -> Outcome:
    """One problem's outcome from its evaluation.

    Only a `verified` evaluation is a solution: one that is suspicious or was measured too briefly is a
    failure here.

    Args:
        evaluation: None where no solution was ever evaluated.
        baseline: `eager`, `compile`, ...; None for the fastest that was measured.
        problem: name or hash.
    """
    performance = evaluation.performance if evaluation is not None and evaluation.verified else None
    if performance is None:
        return Outcome(problem=problem)
    if baseline is None:
        baseline_s = performance.latency_s * performance.speedup_over_best.point
    elif baseline in performance.speedup:
        # The paired ratio, not the quotient of two medians: it is what the interval was found for.
        baseline_s = performance.latency_s * performance.speedup[baseline].point
    else:
        return Outcome(problem=problem)
    return Outcome(
        problem=problem,
        solution_s=performance.latency_s or None,
        baseline_s=baseline_s or None,
        sol_s=performance.sol_s or None,
    )


def clipped_speedup(baseline_s: float, solution_s: float, sol_s: float | None = None) -> float:
    """Baseline time / solution time, the latter never below the speed of light.

    Args:
        baseline_s: seconds a call.
        solution_s: seconds a call.
        sol_s: speed-of-light seconds of one call, where known.

    Raises:
        ValueError: a time that is not positive and finite.
    """
    _require_times(baseline_s, solution_s, *(() if sol_s is None else (sol_s,)))
    return baseline_s / max(solution_s, sol_s or 0.0)


def fast_p(speedups: Sequence[float | None], p: float) -> float:
    """Share of all problems that are right and strictly more than `p` times as fast.

    Reference: Ouyang et al., KernelBench, 2025. A speedup of exactly p does not count: a solution that calls
    the baseline has a speedup of 1 and is not in fast_1.

    Args:
        speedups: one entry a problem; None for a failure.
        p: threshold; 0 gives the share of right solutions.

    Raises:
        ValueError: no problems.
    """
    if not speedups:
        raise ValueError("fast_p of no problems")
    return sum(s is not None and s > p for s in speedups) / len(speedups)


def sol_score(solution_s: float, baseline_s: float, sol_s: float) -> float:
    """How far from the baseline to the speed of light: 0.5 at the baseline, 1 at the speed of light.

    S = 1 / (1 + (Tk - Tsol) / (Tb - Tsol)), SOL-ExecBench (NVIDIA, arXiv 2603.19173). Unguarded, a time
    below the speed of light gives more than 1 and a pole at Tk = 2 Tsol - Tb; here Tk is at least Tsol, so
    S lies in [0, 1]. Where the baseline is at the speed of light already the score is the limit: 1 for a
    solution that is there too, else 0.

    Args:
        solution_s: seconds a call.
        baseline_s: seconds a call.
        sol_s: speed-of-light seconds of one call.

    Raises:
        ValueError: a time that is not positive and finite.
    """
    _require_times(solution_s, baseline_s, sol_s)
    behind = max(solution_s - sol_s, 0.0)
    room = baseline_s - sol_s
    if room <= 0:
        return 0.0 if behind else 1.0
    return room / (room + behind)


def geometric_mean(values: Sequence[float], weights: Sequence[float] | None = None) -> float:
    """Geometric mean of positive numbers.

    Args:
        values: positive.
        weights: how often each counts; None for once.

    Raises:
        ValueError: no values, one that is not positive and finite, or weights that do not fit.
    """
    _require_times(*values)
    counts = [1.0] * len(values) if weights is None else list(weights)
    if len(counts) != len(values) or not sum(counts) > 0 or any(w < 0 for w in counts):
        raise ValueError("the geometric mean needs values, and a weight for each")
    return math.exp(math.fsum(w * math.log(v) for w, v in zip(counts, values, strict=True)) / sum(counts))


def summary(outcomes: Sequence[Outcome], thresholds: Sequence[float] = THRESHOLDS) -> Scores:
    """Sum up several problems.

    Args:
        outcomes: one a problem, failures among them.
        thresholds: the p of fast_p.

    Raises:
        ValueError: no problems.
    """
    speedups = [o.speedup for o in outcomes]
    passed = [s for s in speedups if s is not None]
    scores = [s for s in (o.sol_score for o in outcomes) if s is not None]
    return Scores(
        problems=len(outcomes),
        failures=len(outcomes) - len(passed),
        fast={f"{p:g}": fast_p(speedups, p) for p in thresholds},
        geometric_mean_speedup=geometric_mean(passed) if passed else None,
        sol_score=math.fsum(scores) / len(scores) if scores else None,
        sol_known=len(scores),
    )


def _require_times(*values: float) -> None:
    if not all(math.isfinite(v) and v > 0 for v in values):
        raise ValueError("times and ratios must be positive and finite")
