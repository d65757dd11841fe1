"""Speedups limited by physics, fast_p, SOL score, geometric mean and median over problems.

A failure is a problem without a solution time: it counts against a figure, never as a speedup of 1. Figures
named `kept` are the exception: they ask how fast the artifacts are, and a failure keeps its baseline.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from pydantic import Field

from agentforge.referee.timing.statistics import geometric_mean, require_times
from agentforge.schema import Evaluation, FrozenModel, Interval, StitchResult

_KEPT = ("", "eager", "compile")
"""How modes of artifacts that run a baseline begin: no kernel of the arm is in them."""

THRESHOLDS = (0.0, 0.5, 0.8, 1.0, 1.5, 2.0)
"""The p of fast_p that KernelBench reports; fast_0 is the share of correct ones."""


class ProblemScore(FrozenModel):
    """Times of one problem's solution."""

    problem: str = ""
    """Name or hash, for a reader."""
    solution_s: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """Seconds a call of the solution; None if it failed."""
    baseline_s: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """Seconds a call of the baseline; None if nothing could be measured."""
    low: float | None = Field(default=None, allow_inf_nan=False)
    """Low end of the speedup's 95% interval; None if it failed."""
    sol_s: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """Speed-of-light seconds; None if they are not known."""
    kept: float = Field(default=1.0, gt=0, allow_inf_nan=False)
    """Speedup of the baseline that a failure keeps: 1, or that of torch.compile."""

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
    def speedup_low(self) -> float | None:
        """The interval's low end, at most `speedup`; None for a failure."""
        speedup = self.speedup
        return None if speedup is None or self.low is None else min(speedup, self.low)

    @property
    def sol_score(self) -> float | None:
        """`sol_score`, 0 for a failure; None if no speed of light is known."""
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
    fast_low: dict[str, float]
    """The same, counted by the low end of the speedup's interval."""
    geometric_mean_speedup: float | None
    """Of those that pass; None if none does. Meaningless without `failures` beside it."""
    median_speedup: float | None
    """Of those that pass."""
    geometric_mean_kept: float
    """Of all problems, a failure with the speedup of the baseline that it keeps."""
    median_kept: float
    sol_score: float | None
    """Mean over the problems whose speed of light is known, failures as 0; None if none is."""
    sol_known: int
    """Problems that the SOL score rests on."""


def timed(
    latency_s: float | None,
    speedup: Interval | None,
    *,
    problem: str = "",
    sol_s: float | None = None,
    kept: float = 1.0,
) -> ProblemScore:
    """A solution from its time and its speedup over a baseline; a failure if one of them is missing.

    Args:
        problem: this one and the others are as in `ProblemScore`.
    """
    if not latency_s or speedup is None:
        return ProblemScore(problem=problem, sol_s=sol_s or None, kept=kept)
    return ProblemScore(
        problem=problem,
        solution_s=latency_s,
        # The paired ratio, not the quotient of two medians: its interval was computed for it.
        baseline_s=latency_s * speedup.point or None,
        low=speedup.low,
        sol_s=sol_s or None,
        kept=kept,
    )


def outcome(evaluation: Evaluation | None, *, baseline: str | None = None) -> ProblemScore:
    """One problem's outcome from its evaluation. Only a `verified` evaluation is a solution.

    Args:
        baseline: `eager`, `compile`, ...; None for the fastest that was measured.
    """
    performance = evaluation.performance if evaluation is not None and evaluation.verified else None
    if performance is None:
        return ProblemScore()
    speedup = performance.speedup.get(baseline or performance.best_baseline)
    return timed(performance.latency_s, speedup, sol_s=performance.sol_s)


def own_kernels(mode: str) -> bool:
    """Whether an artifact of this mode runs kernels of its arm, not a baseline."""
    return mode.partition("+")[0] not in _KEPT


def has_kernels(stitched: StitchResult) -> bool:
    """The same of a run's artifact."""
    return own_kernels(stitched.mode)


def result_speedup(stitched: StitchResult | None, evaluation: Evaluation | None) -> float:
    """Speedup of a run's result over the fastest baseline, as in reports; 0 if it is not verified."""
    if stitched is None or not (has_kernels(stitched) and stitched.proven):
        return 0.0
    return outcome(evaluation).speedup or 0.0


def together(workloads: Sequence[ProblemScore], problem: str) -> ProblemScore:
    """Several workloads of one definition as one score: geometric means of times and speedups.

    It passes if every workload does. Else a workload that passes has its speedup, and one that fails the
    baseline that it keeps.

    Args:
        workloads: at least one.
    """
    if len(workloads) == 1:
        return workloads[0].model_copy(update={"problem": problem})
    lows = [w.speedup_low for w in workloads if w.speedup_low is not None]
    limits = [w.sol_s for w in workloads if w.sol_s is not None]
    done = [w for w in workloads if w.solution_s is not None and w.baseline_s is not None]
    sol_s = geometric_mean(limits) if len(limits) == len(workloads) else None
    if len(done) < len(workloads):
        kept = geometric_mean([w.kept if w.speedup is None else w.speedup for w in workloads])
        return ProblemScore(problem=problem, kept=kept, sol_s=sol_s)
    return ProblemScore(
        problem=problem,
        # Each has its own speed of light: the quotient is then the mean of the clipped speedups.
        solution_s=geometric_mean([max(w.solution_s or 0.0, w.sol_s or 0.0) for w in done]),
        baseline_s=geometric_mean([w.baseline_s or 0.0 for w in done]),
        low=geometric_mean(lows) if len(lows) == len(workloads) else None,
        sol_s=sol_s,
    )


def clipped_speedup(baseline_s: float, solution_s: float, sol_s: float | None = None) -> float:
    """Baseline time / solution time, the latter never below the speed of light. Times are seconds a call.

    Raises:
        ValueError: a time that is not positive and finite.
    """
    require_times(baseline_s, solution_s, *(() if sol_s is None else (sol_s,)))
    return baseline_s / max(solution_s, sol_s or 0.0)


def fast_p(speedups: Sequence[float | None], p: float) -> float:
    """Share of all problems that are right and strictly more than `p` times as fast.

    Reference: Ouyang et al., KernelBench, 2025. A speedup of exactly p does not count.

    Args:
        p: threshold; 0 gives the share of right solutions.

    Raises:
        ValueError: no problems.
    """
    if not speedups:
        raise ValueError("fast_p of no problems")
    return sum(s is not None and s > p for s in speedups) / len(speedups)


def sol_score(solution_s: float, baseline_s: float, sol_s: float) -> float:
    """How far from the baseline to the speed of light: 0.5 at the baseline, 1 at the speed of light.

    S = 1 / (1 + (Tk - Tsol) / (Tb - Tsol)), SOL-ExecBench (NVIDIA, arXiv 2603.19173). Tk is clipped to Tsol,
    so S is in [0, 1]. If the baseline is at the speed of light, S is 1 for a solution that is there too, else
    0.

    Args:
        sol_s: speed-of-light seconds of one call.

    Raises:
        ValueError: a time that is not positive and finite.
    """
    require_times(solution_s, baseline_s, sol_s)
    behind = max(solution_s - sol_s, 0.0)
    room = baseline_s - sol_s
    if room <= 0:
        return 0.0 if behind else 1.0
    return room / (room + behind)


def summary(outcomes: Sequence[ProblemScore], thresholds: Sequence[float] = THRESHOLDS) -> Scores:
    """Sum up several problems.

    Raises:
        ValueError: no problems.
    """
    speedups, lows = [o.speedup for o in outcomes], [o.speedup_low for o in outcomes]
    passed = [s for s in speedups if s is not None]
    scores = [s for s in (o.sol_score for o in outcomes) if s is not None]
    kept = [o.kept if s is None else s for o, s in zip(outcomes, speedups, strict=True)]
    return Scores(
        problems=len(outcomes),
        failures=len(outcomes) - len(passed),
        fast={f"{p:g}": fast_p(speedups, p) for p in thresholds},
        fast_low={f"{p:g}": fast_p(lows, p) for p in thresholds},
        geometric_mean_speedup=geometric_mean(passed) if passed else None,
        median_speedup=statistics.median(passed) if passed else None,
        geometric_mean_kept=geometric_mean(kept) if kept else 1.0,
        median_kept=statistics.median(kept) if kept else 1.0,
        sol_score=math.fsum(scores) / len(scores) if scores else None,
        sol_known=len(scores),
    )
