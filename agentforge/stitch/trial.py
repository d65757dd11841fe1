"""Trials of variants: their evaluations, and what the selection asks of them."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from statistics import fmean, median
from typing import Generic, NamedTuple, TypeVar

from agentforge.referee import EvaluationRequest, Evaluator, OnStage
from agentforge.referee.timing.device_lock import WAITING
from agentforge.schema import Definition, Evaluation, Interval, Level, Target, baseline_name

from .files import Mode
from .proof import engagement
from .variants import Promoted, Variant

NOISE = 0.02
"""Smallest relative difference that counts as a difference."""
BETWEEN_EAGER = ("kernels", "kernels+packed")
"""Modes that need no compiler and no warm-up at run time."""
KEPT: dict[str, Mode] = {
    "compile": "compile",
    "freezing": "compile+freezing",
    "max-autotune": "compile+max-autotune",
    "max-autotune-freezing": "compile+max-autotune-freezing",
}
"""Modes of artifacts by baseline. `cuda-graph` is no compiler; it is tried as `kernels+graph`."""

_LONG_STAGES = {
    "compiled baseline": "it waits for the baseline that torch.compile compiles",
    "timing": "it is timed",
    WAITING: WAITING,
}
"""Lines for the stages of an evaluation that may take long."""
_Part = TypeVar("_Part")


@dataclass(frozen=True)
class Trial:
    """A variant with its evaluation."""

    variant: Variant
    evaluation: Evaluation
    problems: tuple[str, ...] = ()
    """Reasons to doubt that its kernels did the work."""

    @property
    def score(self) -> float:
        """Speedup over the best baseline; 0 if the variant failed or its kernels were not seen to run."""
        performance = self.evaluation.performance
        if performance is None or self.problems or not performance.speedup:
            return 0.0
        return min(interval.point for interval in performance.speedup.values())

    @property
    def over_eager(self) -> float:
        """Speedup over eager; 0 if the variant failed or its kernels were not seen to run."""
        interval = speedup_over(self.evaluation, "eager")
        return interval.point if interval and not self.problems else 0.0

    @property
    def beats_eager(self) -> bool:
        """True if proven and the confidence interval against eager lies above 1."""
        interval = speedup_over(self.evaluation, "eager")
        return self.proven and interval is not None and interval.low > 1.0

    @property
    def proven(self) -> bool:
        """True if the referee verified it and every kernel was seen to run."""
        return self.evaluation.verified and not self.problems

    @property
    def beats_best(self) -> bool:
        """True if proven and the confidence interval against each baseline lies above 1.

        The medians say which one is the fastest; if two are close, the other one may be.
        """
        return self.proven and all(interval.low > 1.0 for interval in self.evaluation.speedup.values())

    @property
    def ties(self) -> bool:
        """True if proven, not slower than a mode of torch.compile beyond noise, and faster than the rest."""
        performance = self.evaluation.performance
        if not self.proven or performance is None:
            return False
        least = 1.0 - max(NOISE, performance.minimum_effect)
        return all(
            over.low > 1.0 or (name in KEPT and over.point >= 1.0 and over.low >= least)
            for name, over in performance.speedup.items()
        )

    @property
    def wins(self) -> bool:
        """True if it beats all baselines.

        For kernels between eager operators, a tie with torch.compile is enough: they need no compiler and no
        warm-up at run time.
        """
        return self.beats_best or (self.ties and self.variant.mode in BETWEEN_EAGER)


def latest(trials: Iterable[Trial]) -> dict[str, Trial]:
    """The last trial of each solution, by its hash: the full one, if it was made."""
    return {trial.variant.solution.hash: trial for trial in trials}


class LeftOut(NamedTuple, Generic[_Part]):
    """A trial without one part of a variant."""

    part: _Part
    before: Trial
    """The best one until then, with the part."""
    trial: Trial
    faster: bool
    """Whether it is the best one from now on."""


def leave_out(
    best: Trial,
    parts: Iterable[_Part],
    parts_of: Callable[[Variant], Collection[_Part]],
    try_without: Callable[[Trial, _Part], Trial | None],
    until: float,
) -> Iterator[LeftOut[_Part]]:
    """Leave one part after the other out of the best variant, as long as it gets faster and time is left.

    The last part stays, and a part that went with another one is passed over.

    Args:
        until: monotonic time after which nothing is left out.
    """
    for part in parts:
        if len(parts_of(best.variant)) == 1 or time.monotonic() > until:
            return
        trial = try_without(best, part) if part in parts_of(best.variant) else None
        if trial is not None:
            faster = trial.score > best.score * (1 + NOISE / 2)
            yield LeftOut(part, best, trial, faster)
            best = trial if faster else best


@dataclass
class Forecast:
    """Tells before each verdict how many variants may still be judged, and about how long that takes.

    Args:
        known_s: seconds of an earlier verdict by level, until there are some of this stitch.
        tell: gets the most variants that are left, the next one included, and seconds; None if unknown.
    """

    known_s: Mapping[Level, float] = field(default_factory=dict)
    tell: Callable[[int, float | None], object] = lambda variants, seconds: None
    quick: int = 0
    """Quick verdicts that may still come. One full verdict comes after them in any case."""
    until: float = math.inf
    """Monotonic time after which no new variant is tried."""
    _made_s: dict[Level, list[float]] = field(default_factory=dict)

    def before(self, level: Level) -> None:
        """Tell that a verdict at this level begins."""
        seconds = {**self.known_s, **{each: fmean(made) for each, made in self._made_s.items()}}
        left_s = max(0.0, self.until - time.monotonic())
        quick = max(self.quick if left_s else 0, int(level is not Level.FULL))
        one_s, full_s = seconds.get(Level.QUICK, 0.0), seconds.get(Level.FULL, 0.0)
        known = full_s and (one_s or not quick)
        self.tell(quick + 1, min(quick * one_s, max(left_s, one_s)) + full_s if known else None)

    def after(self, evaluation: Evaluation) -> None:
        """Take its seconds in; one that was taken from another run has none."""
        self.quick -= evaluation.level is not Level.FULL
        if evaluation.seconds:
            self._made_s.setdefault(evaluation.level, []).append(evaluation.seconds)


@dataclass
class Trials:
    """Evaluates variants of one target, and keeps the trials.

    Args:
        end: monotonic time at which no evaluation goes on; None for no limit.
        sol_s: speed-of-light seconds of one forward of the target; None if they are not known.
    """

    target: Target
    kernels: Mapping[str, Promoted]
    referee: Evaluator
    end: float | None
    progress: Callable[[str], None]
    sol_s: float | None = None
    made: list[Trial] = field(default_factory=list)
    forecast: Forecast = field(default_factory=Forecast)

    def evaluate(self, variant: Variant, level: Level, definition: Definition | None = None) -> Trial:
        """Judge a variant by the target's definition, or by another one.

        Raises:
            TimeEnded: the time is over.
        """
        request = EvaluationRequest(
            definition or self.target.definition,
            self.target.workloads,
            variant.solution,
            level=level,
            deadline=self.end,
            sol_s=self.sol_s,
        )
        self.forecast.before(level)
        evaluation = self.referee.evaluate(request, progress=self._stages(variant, level))
        self.forecast.after(evaluation)
        solutions = {name: kernel.solution for name, kernel in self.kernels.items()}
        problems = engagement(variant, evaluation, solutions) if evaluation.passed else []
        trial = Trial(variant, evaluation, tuple(problems))
        self.made.append(trial)
        self.progress(f"{variant.label} ({level.value}): {describe(trial)}{_why(evaluation)}")
        return trial

    def _stages(self, variant: Variant, level: Level) -> OnStage:
        """Tells once that the referee judges a variant, and once that each stage in `_LONG_STAGES` begins."""
        head, said = f"judging {variant.label} at level {level.value}", set[str]()

        def tell(stage: str) -> None:
            line = f"{head}: {_LONG_STAGES[stage]}" if stage in _LONG_STAGES else head
            if line not in said:
                said.add(line)
                self.progress(line)

        return tell

    def refused(self) -> str:
        """The variants without kernels that the referee refused, as the end of a sentence.

        Inductor's freezing, for example, loses a NaN between a convolution and a ReLU on a CPU.
        """
        return "".join(
            f"; {trial.variant.label} was refused: {trial.evaluation.reasons[0].partition(';')[0]}"
            for trial in self.made
            if not trial.variant.kernels and not trial.evaluation.passed and trial.evaluation.reasons
        )

    def predicted(self, trial: Trial) -> float:
        """Speedup over the best baseline that a full evaluation may confirm; 0 if the score is.

        A full evaluation measures all baselines, and a quick one the default mode of torch.compile alone.
        """
        if trial.evaluation.level is Level.FULL:
            return trial.score
        return self.over_eager(trial) / max([1.0, *self._gains().values()])

    def over_eager(self, trial: Trial) -> float:
        """Speedup over eager, by all baselines of a quick evaluation; 0 if the score is.

        A quick evaluation times few blocks, so each baseline's time in it is as noisy as the variant's. What
        a baseline gains over eager is taken from all evaluations together.
        """
        performance, gains = trial.evaluation.performance, {"eager": 1.0, **self._gains()}
        if trial.evaluation.level is Level.FULL or performance is None or not trial.score:
            return trial.over_eager
        found = [over.point * gains[name] for name, over in performance.speedup.items() if name in gains]
        return math.exp(fmean(map(math.log, found)))

    def compile_gains(self) -> dict[str, float]:
        """Median speedup of torch.compile over eager in full evaluations, else in quick ones, by mode."""
        return {name: gain for name, gain in self._gains().items() if name in KEPT}

    def _gains(self) -> dict[str, float]:
        """The same of each baseline."""
        quick, full = dict[str, list[float]](), dict[str, list[float]]()
        for trial in self.made:
            gains = full if trial.evaluation.level is Level.FULL else quick
            over = trial.evaluation.speedup
            for name, found in over.items():
                if name != "eager" and "eager" in over and found.point > 0:
                    gains.setdefault(name, []).append(over["eager"].point / found.point)
        return {name: median(gains) for name, gains in (quick | full).items()}


def _why(evaluation: Evaluation) -> str:
    """Why it counts for nothing; empty if it does, or if a full evaluation may follow."""
    unproven = evaluation.level is Level.FULL and not evaluation.verified
    if not evaluation.reasons or (evaluation.passed and not unproven):
        return ""
    return f"{', not verified' if evaluation.passed else ''}: {evaluation.reasons[0].partition(';')[0]}"


def speedup_over(evaluation: Evaluation, baseline: str) -> Interval | None:
    """The speedup over a baseline; None if it was not measured."""
    return evaluation.performance.speedup.get(baseline) if evaluation.performance else None


def outcome(trial: Trial) -> str:
    """The score of a trial, or why it has none."""
    return f"{trial.score:.2f}x" if trial.score else describe(trial)


def describe(trial: Trial) -> str:
    """Summarize a trial's outcome in a few words."""
    if trial.problems:
        return trial.problems[0]
    performance = trial.evaluation.performance
    if performance is None:
        return trial.evaluation.status.value
    found = sorted(performance.speedup.items())
    return ", ".join(f"{i.point:.2f}x over {baseline_name(name)}" for name, i in found)
