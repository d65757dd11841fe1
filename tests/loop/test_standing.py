"""Standing: what follows from the attempts alone."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from agentforge.config import SearchSettings
from agentforge.loop.standing import Standing, faster_than_eager, gain_over_best, gain_over_eager
from agentforge.schema import (
    Attempt,
    AttemptStatus,
    Critique,
    Environment,
    Evaluation,
    EvaluationStatus,
    Evidence,
    Interval,
    Level,
    Performance,
)

from .scripted import bottleneck

SETTINGS = SearchSettings()


def measured(
    speed: float, *, compiled: float = 1.0, verified: bool = True, spread: float = 0.01
) -> Evaluation:
    def about(value: float) -> Interval:
        return Interval(point=value, low=value * (1 - spread), high=value * (1 + spread))

    return Evaluation(
        definition="d",
        solution="s",
        workloads=("w",),
        level=Level.FULL,
        status=EvaluationStatus.PASSED,
        evidence=Evidence.VERIFIED if verified else Evidence.UNVERIFIED,
        performance=Performance(
            latency_s=1 / speed,
            baseline_s={"eager": 1.0, "compile": 1 / compiled},
            speedup={"eager": about(speed), "compile": about(speed / compiled)},
            control=about(1.0),
            blocks=8,
            processes=3,
        ),
        environment=Environment(device="d", architecture="a", toolchain={}),
        timestamp=datetime.now(UTC),
    )


def standing(*evaluations: Evaluation | None, verdict: str = "optimize", **changes: object) -> Standing:
    attempts = tuple(
        Attempt(
            id=str(number),
            run="r",
            bottleneck="b",
            parent=str(number - 1) if number > 1 else None,
            number=number,
            status=AttemptStatus.DONE if evaluation else AttemptStatus.FAILED,
            evaluation="e" if evaluation else None,
            critique=Critique(kind=verdict) if evaluation else None,  # type: ignore[arg-type]
        )
        for number, evaluation in enumerate(evaluations, start=1)
    )
    found = {a.id: e for a, e in zip(attempts, evaluations, strict=True) if e}
    return Standing(bottleneck("a", **changes), attempts, found)


def test_eager_holds_at_first() -> None:
    fresh = standing()
    assert (fresh.incumbent, fresh.speedup, fresh.time_s) == (None, 1.0, 1.0)


def test_the_incumbent_is_the_fastest_verified() -> None:
    found = standing(measured(2.0), measured(4.0), measured(3.0), measured(9.0, verified=False))
    assert found.incumbent is not None
    assert found.incumbent[0].number == 2
    assert found.time_s == pytest.approx(0.25)
    assert [a.number for a, _ in found.promotions] == [1, 2]


def test_an_interval_that_reaches_one_is_no_win() -> None:
    assert not faster_than_eager(measured(1.05, spread=0.1))
    assert standing(measured(1.05, spread=0.1)).incumbent is None


def test_promising_means_faster_than_what_holds() -> None:
    assert standing().promising(measured(1.1, verified=False))
    assert not standing().promising(measured(0.9, verified=False))
    assert not standing(measured(2.0)).promising(measured(1.5, verified=False))
    assert standing(measured(2.0)).promising(measured(2.5, verified=False))


def test_gains_are_over_the_named_baseline() -> None:
    fast = measured(3.0, compiled=2.0)
    assert gain_over_eager(fast) == 3.0
    assert gain_over_best(fast) == pytest.approx(1.5)
    assert gain_over_eager(None) is None
    assert gain_over_best(None) is None


def test_since_gain_counts_evaluated_and_all() -> None:
    assert standing(measured(2.0), measured(1.0), None, measured(1.5)).since_gain() == (2, 3)


def test_closing() -> None:
    assert standing(*[measured(0.9)] * (SETTINGS.patience - 1)).closed(SETTINGS) == ""
    assert "no gain" in standing(*[measured(0.9)] * SETTINGS.patience).closed(SETTINGS)
    assert standing(*[None] * SETTINGS.patience).closed(SETTINGS) == ""
    assert "no gain" in standing(*[None] * (3 * SETTINGS.patience)).closed(SETTINGS)
    assert "speed of light" in standing(measured(9.6)).closed(SETTINGS)
    assert "vendor" in standing(optimizable=False).closed(SETTINGS)
    assert "still to be had" in standing(share=0.001).closed(SETTINGS)
    assert "still to be had" in standing(measured(8.0), share=0.05, gain_s=0.88).closed(SETTINGS)


@pytest.mark.parametrize(("speed", "left"), [(1.0, 0.45), (2.0, 0.20), (10.0, 0.0), (20.0, 0.0)])
def test_share_left(speed: float, left: float) -> None:
    assert standing(measured(speed)).share_left == pytest.approx(left)


def test_success_starts_at_the_prior_and_falls_with_failures() -> None:
    def success(*evaluations: Evaluation | None) -> float:
        return standing(*evaluations).tree(SETTINGS, prior=0.6, cost_s=1.0, planless=False).success

    assert success() == pytest.approx(0.6)
    assert success(measured(0.9)) < success()
    assert success(measured(2.0)) > success()


def test_what_is_much_slower_than_its_parent_is_abandoned() -> None:
    nodes = standing(measured(4.0), measured(1.0)).tree(SETTINGS, prior=0.5, cost_s=1.0, planless=False).nodes
    assert [n.verdict for n in nodes] == ["optimize", "abandon"]
    assert [n.children for n in nodes] == [1, 0]


def test_a_planless_tree_is_exhausted() -> None:
    assert standing().tree(SETTINGS, prior=0.5, cost_s=1.0, planless=True).exhausted
    assert not standing().tree(SETTINGS, prior=0.5, cost_s=1.0, planless=False).exhausted


def test_another_bottleneck_costs_more_than_the_warm_one() -> None:
    warm, cold = (
        standing().tree(SETTINGS, prior=0.5, cost_s=7.0, planless=False, warm=w) for w in (True, False)
    )
    assert cold.cost_s > warm.cost_s == 7.0


def test_reachable_is_never_below_the_speed_of_light() -> None:
    tree = standing(gain_s=5.0).tree(SETTINGS, prior=0.5, cost_s=1.0, planless=False)
    assert tree.reachable_s == pytest.approx(0.1)
