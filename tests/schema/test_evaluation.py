"""Speedups of verdicts that measured different baselines, on one scale."""

from __future__ import annotations

import pytest

from agentforge.schema import BestBaseline, Evaluation, EvaluationStatus, Interval
from tests.store import nouns


def verdict(**speedups: float) -> Evaluation:
    """A verdict with these speedups, each 10 % uncertain."""
    about = {name: Interval(point=s, low=0.9 * s, high=1.1 * s) for name, s in speedups.items()}
    return nouns.evaluation(performance=nouns.performance(baseline_s=speedups, speedup=about))


ALONE, BOTH = verdict(eager=1.7), verdict(eager=1.8, compile=0.9)


def test_what_was_measured_against_eager_alone_is_slower_than_a_compiled_baseline_too() -> None:
    best = BestBaseline.of([ALONE, BOTH, None, nouns.evaluation(status=EvaluationStatus.CRASHED)])
    assert (best.name, best.over_eager) == ("compile", pytest.approx(2.0))
    assert best.speedup(BOTH) == 0.9, "as it was measured"
    found = best.interval(ALONE)
    assert found is not None
    assert (found.low, found.point, found.high) == pytest.approx((0.765, 0.85, 0.935))
    assert best.speedup(None) is best.speedup(nouns.evaluation(speedup=None)) is None


def test_eager_is_the_best_baseline_if_nothing_faster_was_measured() -> None:
    for known in ([], [ALONE], [ALONE, verdict(eager=1.2, compile=1.5)]):
        assert BestBaseline.of(known) == BestBaseline() == BestBaseline("eager", 1.0)
    assert BestBaseline().speedup(ALONE) == 1.7


def test_the_fastest_baseline_of_all_verdicts_counts_by_its_median() -> None:
    """One disturbed verdict does not change the scale."""
    compiled = [verdict(eager=2.0, compile=2.0 / ratio) for ratio in (1.5, 1.6, 9.0)]
    frozen = verdict(eager=2.0, compile=1.25, freezing=1.0)
    best = BestBaseline.of([*compiled, frozen])
    assert (best.name, best.over_eager) == ("freezing", pytest.approx(2.0))
    assert BestBaseline.of(compiled).over_eager == pytest.approx(1.6)
