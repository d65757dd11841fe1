"""Fitting the similarity's factors, on landscapes where the answer is known."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import ModuleType

import pytest

from agentforge.schema import Strategy

from .test_kb_transfer import BENCHMARKS, STRATEGIES, landscape

CARDS = {name: Strategy(id=name, title=name, summary="", prior_weight=1.0) for name in STRATEGIES}


@pytest.fixture(scope="module")
def weights() -> Iterator[ModuleType]:
    sys.path.insert(0, str(BENCHMARKS))
    import kb_weights

    yield kb_weights
    sys.path.remove(str(BENCHMARKS))


def test_what_misleads_gets_a_smaller_factor(weights: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """Operator classes have the same kinds of operators here, and another strategy is the best in each."""
    monkeypatch.setattr(weights, "STEPS", 5)
    same = {"operators": (("pointwise", 2),)}
    every = [
        landscape(f"{operator}{family}", family, "l2/many-rows", best=family)
        for family in range(3)
        for operator in "ab"
    ]
    every = [one.model_copy(update={"context": one.context.model_copy(update=same)}) for one in every]
    found = weights.result(every, CARDS)
    assert found["landscapes"] == 6
    assert found["weights"]["operator"] < weights.GUESSES.operator
    assert found["loss"]["fitted"] < found["loss"]["guessed"]
    assert found["worth_using"]
    assert found["weights"]["dtype"] == pytest.approx(weights.GUESSES.dtype, abs=1e-3), (
        "nothing differs in it"
    )


def test_the_right_order_costs_less(weights: ModuleType) -> None:
    every = [landscape(f"{operator}0", 0, "l2/many-rows", best=2) for operator in "ab"]
    right, _ = weights.cases(every, CARDS)
    wrong = weights.Case(
        right.family, {s: -g for s, g in right.gains.items()}, right.landscape, right.records
    )
    assert right.loss(CARDS, weights.GUESSES) < 0.2 < wrong.loss(CARDS, weights.GUESSES)


def test_one_class_is_not_enough(weights: ModuleType) -> None:
    with pytest.raises(SystemExit, match="two operator classes"):
        weights.result([landscape(f"{o}0", 0, "l2/many-rows", best=2) for o in "ab"], CARDS)
