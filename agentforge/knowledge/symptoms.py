"""A matrix of symptoms and techniques: what each strategy gained where a sign was seen."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable
from statistics import mean, stdev

from scipy.special import stdtrit

from agentforge.schema import EvaluationStatus, Evidence, FrozenModel, Outcome


class SymptomCell(FrozenModel):
    """One symptom and one strategy."""

    symptom: str
    """A metric that decided the class of what was built on. For a first attempt, and what repairs or tunes
    it, the bottleneck class."""
    strategy: str
    n: int
    """Verified results."""
    failures: int
    gain: float | None
    """Geometric mean of what the strategy itself gained; None without a verified result."""
    low: float | None = None
    """Ends of its 95 % t interval; None below two results."""
    high: float | None = None


def symptom_matrix(outcomes: Iterable[Outcome]) -> tuple[SymptomCell, ...]:
    """The outcomes of this database by symptom and strategy; an outcome counts for each of its symptoms."""
    gains: dict[tuple[str, str], list[float]] = defaultdict(list)
    failures: dict[tuple[str, str], int] = defaultdict(int)
    for outcome in outcomes:
        if outcome.claimed or outcome.status.undecided:
            continue
        bound = outcome.context.bound
        # without `after` the credit is the whole speedup, most of which may have come before the symptoms
        seen = outcome.symptoms if outcome.after else ()
        signs = seen or (f"{bound}-bound" if bound else "unknown",)
        for key in ((sign, outcome.strategy) for sign in signs):
            if outcome.status is not EvaluationStatus.PASSED:
                failures[key] += 1
            elif outcome.evidence is Evidence.VERIFIED and outcome.credit is not None:
                gains[key].append(outcome.credit)
    return tuple(_cell(*key, gains[key], failures[key]) for key in sorted(gains.keys() | failures.keys()))


def _cell(symptom: str, strategy: str, logs: list[float], failures: int) -> SymptomCell:
    middle = mean(logs) if logs else None
    low = high = None
    if middle is not None and len(logs) > 1:
        half = float(stdtrit(len(logs) - 1, 0.975)) * stdev(logs) / math.sqrt(len(logs))
        low, high = math.exp(middle - half), math.exp(middle + half)
    gain = None if middle is None else math.exp(middle)
    return SymptomCell(
        symptom=symptom, strategy=strategy, n=len(logs), failures=failures, gain=gain, low=low, high=high
    )
