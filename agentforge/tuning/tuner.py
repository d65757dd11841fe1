"""Tune one attempt: points race against the incumbent, and each finished trial is kept.

They are compared over eager, because only that baseline is measured in every verdict.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean

from agentforge.schema import Evaluation, Interval, Solution, Trial

from .study import next_point
from .variants import Variants

LAPS = 2
"""Further verdicts of a point and the incumbent, in turns, if the first does not decide."""

_OVER = "eager"

_Raced = tuple[tuple[float, ...], bool]


@dataclass(frozen=True)
class Tuner:
    """Tunes one attempt."""

    variants: Variants
    most: int
    """Trials, the attempt as it was written included."""
    seed: str
    evaluate: Callable[[Solution, bool], Evaluation | None]
    """A quick verdict, a new one if the flag is set; None if the budget is used up."""
    keep: Callable[[Sequence[Trial]], None]
    """Stores the finished trials, in place of those before."""

    def run(self, solution: Solution, quick: Evaluation, before: Sequence[Trial]) -> Solution:
        """The fastest solution; the attempt's own if nothing was clearly faster.

        Args:
            solution: as it was written.
            quick: its verdict.
            before: the trials that were kept, if the tuner was interrupted. It begins anew if an older
                version made them: they are over another baseline.
        """
        timed = quick.speedup.get(_OVER)
        if not self.variants.space or timed is None:
            return solution
        trials = list(before) if all(trial.over == _OVER for trial in before) else []
        if not trials:
            parameters = dict(self.variants.start)
            trials.append(Trial(parameters=parameters, log_speedups=(_log(timed),), over=_OVER, won=True))
            self.keep(trials)
        incumbent = next(trial for trial in reversed(trials) if trial.won)
        best = solution if incumbent is trials[0] else self.variants.write(incumbent.parameters) or solution
        while (point := next_point(self.variants.space, trials, self.seed, self.most)) is not None:
            written = self.variants.write(point)
            raced: _Raced | None = ((), False)
            if written is not None:
                verdict = self.evaluate(written, False)
                raced = None if verdict is None else self._race(written, verdict, best, incumbent)
            if raced is None:
                break  # nothing is kept, so that a resume measures the point
            logs, won = raced
            trials.append(Trial(parameters=point, log_speedups=logs, over=_OVER, won=won))
            self.keep(trials)
            if won and written is not None:
                incumbent, best = trials[-1], written
        return best

    def _race(self, solution: Solution, first: Evaluation, best: Solution, incumbent: Trial) -> _Raced | None:
        """Log speedups of a point, and whether it beats the incumbent; None if the budget is used up.

        A point whose interval lies below the incumbent's mean ends after one verdict, and one whose interval
        lies above it wins. Otherwise both are measured again in turns.
        """
        timed = first.speedup.get(_OVER)
        if timed is None:
            return (), False
        own, theirs = [_log(timed)], list(incumbent.log_speedups)
        bar = math.exp(fmean(theirs))
        if timed.high < bar or timed.low > bar:
            return tuple(own), timed.low > bar
        for _ in range(LAPS):
            for runner, logs in ((best, theirs), (solution, own)):
                verdict = self.evaluate(runner, True)
                if verdict is None:
                    return None
                again = verdict.speedup.get(_OVER)
                if again is None:
                    return tuple(own), False
                logs.append(_log(again))
        return tuple(own), fmean(own) > fmean(theirs)


def _log(speedup: Interval) -> float:
    return math.log(max(speedup.point, 1e-9))
