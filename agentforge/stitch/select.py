"""Which variant the artifact takes: what wins end to end, and never one that the best baseline beats."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from agentforge.schema import (
    Definition,
    Evaluation,
    Interval,
    Level,
    Solution,
    Target,
    Workload,
)

from .files import Mode
from .proof import engagement
from .variants import Promoted, Variant, Variants

_MAX_FINALS = 3
"""Full verdicts before the best baseline is kept."""

_NOISE = 0.02
"""Least relative difference that is called one."""
_COMPILE_GAIN = 1.02
"""torch.compile is kept where it was seen this much faster than eager."""


class Evaluator(Protocol):
    """What judges a variant: the referee."""

    def evaluate(
        self,
        definition: Definition,
        workloads: Sequence[Workload],
        solution: Solution,
        *,
        level: Level = Level.QUICK,
    ) -> Evaluation:
        """The verdict on `solution`; failures are data."""
        ...


@dataclass(frozen=True)
class Trial:
    """A variant with the referee's verdict."""

    variant: Variant
    evaluation: Evaluation
    problems: tuple[str, ...] = ()
    """What speaks against its kernels having done the work."""

    @property
    def score(self) -> float:
        """Speedup over the best baseline; 0 where it failed or its kernels were not seen to run."""
        performance = self.evaluation.performance
        if performance is None or self.problems or not performance.speedup:
            return 0.0
        return min(interval.point for interval in performance.speedup.values())

    @property
    def over_eager(self) -> float:
        """Speedup over eager; 0 where it failed or its kernels were not seen to run."""
        interval = _speedup(self.evaluation, "eager")
        return interval.point if interval and not self.problems else 0.0

    @property
    def beats_eager(self) -> bool:
        """Proven, and the whole interval against eager lies above 1."""
        interval = _speedup(self.evaluation, "eager")
        return self.proven and interval is not None and interval.low > 1.0

    @property
    def proven(self) -> bool:
        """Verified by the referee, and every kernel was seen to run."""
        return self.evaluation.verified and not self.problems

    @property
    def wins(self) -> bool:
        """Proven, and not slower than the best baseline beyond noise.

        Against torch.compile a tie is enough for kernels between eager operators: they need no compiler
        at run time and no warm-up. Every other variant must be faster.
        """
        performance = self.evaluation.performance
        if not self.proven or performance is None:
            return False
        over_best = performance.speedup_over_best
        if over_best.low > 1.0:
            return True
        ties = over_best.point >= 1.0 and over_best.low >= 1.0 - max(_NOISE, performance.minimum_effect)
        return ties and self.variant.mode in _BETWEEN_EAGER and performance.best_baseline == "compile"


@dataclass(frozen=True)
class Selection:
    """The outcome: the variant taken, with its verdict where it was evaluated, and all trials."""

    variant: Variant
    trial: Trial | None
    trials: tuple[Trial, ...]
    reason: str
    """Why this one, in a sentence."""


class Selector:
    """Evaluates variants and takes one.

    Args:
        target: the model.
        variants: makes them.
        kernels: what may be put in.
        referee: judges them.
        seconds: wall time after which no further variant is searched for; the final verdict comes on top.
        waits: whether the GPU waits for the host long enough that a CUDA graph is worth a try.
        streams: whether the device has streams.
        packed: whether enough of the time is spent in products for packed weights to be worth a try.
        progress: receives lines of progress.
    """

    def __init__(
        self,
        target: Target,
        variants: Variants,
        kernels: Mapping[str, Promoted],
        referee: Evaluator,
        *,
        seconds: float,
        waits: bool = False,
        streams: bool = False,
        packed: bool = False,
        progress: Callable[[str], None] | None = None,
    ) -> None:
        self._waits = waits
        self._streams = streams
        self._packed = packed
        self._target = target
        self._variants = variants
        self._kernels = kernels
        self._referee = referee
        self._deadline = time.monotonic() + seconds
        self._progress = progress or (lambda line: None)
        self._trials: list[Trial] = []

    def run(self) -> Selection:
        """Take the fastest variant that the referee verifies; else the best baseline."""
        reason = "no kernel was promoted" if not self._kernels else "no kernel could be put in"
        finals = 0
        for candidate in self._explore():
            if candidate.score <= 1.0 - _NOISE:
                reason = "nothing that was put in made the whole model faster than the best baseline"
                continue
            final = self._evaluate(candidate.variant, Level.FULL)
            if final.wins:
                return self._selection(final.variant, final, f"{final.variant.label} won end to end")
            reason = "what looked faster was not confirmed by the full evaluation"
            finals += 1
            if finals == _MAX_FINALS:
                break
        return self._baseline(reason)

    def _explore(self) -> Iterator[Trial]:
        """Quick verdicts, the cheapest to have first: all launches as a CUDA graph where the GPU waits for
        the host, all kernels between eager operators, the same under torch.compile (which compiles in each of
        the candidate's processes), then smaller sets, packed weights without any kernel last."""
        names = list(self._kernels)
        if self._waits:
            yield from self._and_other(names, "kernels+graph")
        if names or self._packed:
            smaller = [[n for n in names if n != out] for out in names]
            self._variants.prepare([names, *smaller], packed=self._packed)
        trials: list[Trial] = []
        for mode in _MODES:
            found = self._and_other(names, mode)
            trials += found
            yield from found
        best = next((t for t in trials if t.variant.mode in _BETWEEN_EAGER), None)
        if best is not None and len(names) > 1:
            yield from sorted(self._drop_one(best, names), key=lambda trial: -trial.score)
        if names and self._packed and (alone := self._try((), "kernels+packed")):
            yield alone

    def _and_other(self, names: Collection[str], mode: Mode) -> list[Trial]:
        """A variant, and the same on several streams or with packed weights, the better one first; a tie is
        the simpler one's."""
        way = self._other(mode)
        plain, other = self._try(names, mode), self._try(names, way) if way else None
        faster = plain and other and other.score > plain.score * (1 + _NOISE)
        return [trial for trial in ((other, plain) if faster else (plain, other)) if trial]

    def _other(self, mode: Mode) -> Mode | None:
        if self._packed:
            return "kernels+packed" if mode == "kernels" else None
        # Where the GPU waits for the host, more streams are more to wait for, except in a graph.
        if self._streams and (mode == "kernels+graph" or not self._waits):
            return _STREAMED.get(mode)
        return None

    def _drop_one(self, best: Trial, names: Sequence[str]) -> list[Trial]:
        """Leave kernels out one at a time, the least promising first, while the rest gets faster by it."""
        trials: list[Trial] = []
        kept = set(names)
        for name in sorted(names, key=lambda n: self._kernels[n].time_s):
            if len(kept) == 1 or time.monotonic() > self._deadline:
                break
            trial = self._try(kept - {name}, best.variant.mode)
            if trial is None:
                continue
            trials.append(trial)
            if trial.score > best.score * (1 + _NOISE / 2):
                best = trial
                kept.discard(name)
        return trials

    def _try(self, names: Collection[str], mode: Mode) -> Trial | None:
        variant = self._variants.with_kernels(names, mode)
        return self._evaluate(variant, Level.QUICK) if variant else None

    def _evaluate(self, variant: Variant, level: Level) -> Trial:
        definition, workloads = self._target.definition, self._target.workloads
        evaluation = self._referee.evaluate(definition, workloads, variant.solution, level=level)
        solutions = {name: kernel.solution for name, kernel in self._kernels.items()}
        problems = engagement(variant, evaluation, solutions) if evaluation.passed else []
        trial = Trial(variant, evaluation, tuple(problems))
        self._trials.append(trial)
        self._progress(f"{variant.label} ({level.value}): {describe(trial)}")
        return trial

    def _baseline(self, reason: str) -> Selection:
        """torch.compile where it was, or now is, seen to be faster than eager; else eager."""
        gains = [g for t in self._trials if (g := _compile_gain(t.evaluation)) is not None]
        compiled = None
        if not gains or max(gains) > _COMPILE_GAIN:
            variant = self._variants.compiled()
            compiled = self._evaluate(variant, Level.FULL) if variant else None
        least = compiled.over_eager if compiled and compiled.beats_eager else 1.0
        ours = self._as_good_as_compiled(least)
        if ours is not None:
            why = f"{ours.variant.label} won over eager, and over torch.compile put in the same way"
            return self._selection(ours.variant, ours, why)
        if compiled and compiled.beats_eager:
            return self._selection(compiled.variant, compiled, f"{reason}; torch.compile is kept")
        return self._selection(self._variants.eager(), None, f"{reason}; eager is kept")

    def _as_good_as_compiled(self, least: float) -> Trial | None:
        """What needs no compiler, and is at least `least` times as fast as eager.

        torch.compile in the artifact has the artifact's dispatch around it, as the kernels have; the bare
        baseline has not. What is put in instead of the other is compared under the same conditions.
        """
        trials = [t for t in self._trials if "compile" not in t.variant.mode and t.over_eager > least]
        best = max(trials, key=lambda t: t.over_eager, default=None)
        if best is None:
            return None
        final = best if best.evaluation.level is Level.FULL else self._evaluate(best.variant, Level.FULL)
        return final if final.beats_eager and final.over_eager >= least else None

    def _selection(self, variant: Variant, trial: Trial | None, reason: str) -> Selection:
        return Selection(variant, trial, tuple(self._trials), reason)


_MODES: tuple[Mode, ...] = ("kernels", "kernels+compile")
_BETWEEN_EAGER = ("kernels", "kernels+packed")
"""Need no compiler and no warm-up at run time."""
_STREAMED: dict[Mode, Mode] = {"kernels": "kernels+streams", "kernels+graph": "kernels+graph+streams"}


def _speedup(evaluation: Evaluation, baseline: str) -> Interval | None:
    return evaluation.performance.speedup.get(baseline) if evaluation.performance else None


def _compile_gain(evaluation: Evaluation) -> float | None:
    """How much faster than eager torch.compile was in that evaluation."""
    eager, compiled = _speedup(evaluation, "eager"), _speedup(evaluation, "compile")
    return eager.point / compiled.point if eager and compiled and compiled.point > 0 else None


def describe(trial: Trial) -> str:
    """A trial's outcome in a few words."""
    if trial.problems:
        return trial.problems[0]
    performance = trial.evaluation.performance
    if performance is None:
        return trial.evaluation.status.value
    return ", ".join(f"{i.point:.2f}x over {name}" for name, i in sorted(performance.speedup.items()))
