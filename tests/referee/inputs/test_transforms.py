"""Contents that timed calls ask for among the usual ones."""

from __future__ import annotations

import math

import pytest
import torch

from agentforge.referee.comparison.tolerance import Bound
from agentforge.referee.inputs.mixing import same_values
from agentforge.referee.inputs.transforms import (
    LARGE,
    ONE_LARGE,
    UNUSUAL,
    Answer,
    ProbeInput,
    exposing_contents,
)
from agentforge.referee.workers.pytree import Leaf

USUAL = [Bound(1e-6, 1e-6, 1e-7, 1e-7)]


def answer_with(*bounds: Bound) -> Answer:
    return Answer([], list(bounds))


def test_what_is_asked_for_is_bounded_by_the_loosest_and_some_slack():
    exact, usual = Bound(2e-6, 1e-7, 1e-8, 1e-7), USUAL[0]
    found = ProbeInput.of(LARGE, answer_with(exact), USUAL)
    assert found is not None
    assert found.bounds == [Bound(4e-6, 2 * usual.element, 2 * usual.absolute, 1e-7)]


def test_where_the_reference_is_less_exact_nothing_is_asked_for():
    assert ProbeInput.of(LARGE, answer_with(Bound(1e-5, 1e-6, 1e-7, 1e-6)), USUAL) is None


def test_nan_is_asked_for_if_its_place_is_certain():
    nan = next(c for c in UNUSUAL if c.defined == "nan")
    value = torch.tensor([1.0, math.nan])
    for other, asked in ((None, True), (value + 1e-7, True), (torch.ones(2), False)):
        answer = Answer([Leaf("out", value, alternative=other)], USUAL)
        assert (ProbeInput.of(nan, answer, USUAL) is not None) is asked


def test_one_large_value_lies_anywhere():
    places = set()
    for _ in range(8):
        tensor = torch.ones(64, 1000).t()
        ONE_LARGE.apply([tensor])
        assert sorted(tensor.unique().tolist()) == [1.0, 64.0]
        places.add(int((tensor == 64).reshape(-1).to(torch.uint8).argmax()))
    assert len(places) > 4


def test_special_values_lie_where_nobody_guesses():
    nan = next(c for c in UNUSUAL if c.defined == "nan")
    first: set[int] = set()
    for _ in range(8):
        tensor = torch.zeros(4036)
        nan.apply([tensor])
        assert int(tensor.isnan().sum()) in (3, 4)
        first.add(int(tensor.isnan().to(torch.uint8).argmax()))
    assert len(first) > 4


@pytest.mark.parametrize("dtype", [torch.float8_e4m3fn, torch.float8_e5m2, torch.complex64])
def test_types_that_lack_operators_are_changed_too(dtype):
    for content in [*UNUSUAL, *exposing_contents(1)]:
        tensor = torch.randn(64, dtype=torch.complex64 if dtype.is_complex else None).to(dtype)
        before = tensor.clone()
        content.apply([tensor])
        changes = content.concerns(0, tensor) and "hard to round" not in content.name
        assert not changes or not same_values(tensor, before), content.name
        assert content.concerns(0, tensor) or content.defined != "finite"


def test_rows_get_a_zero_and_equal_neighbours() -> None:
    contents = {c.name: c for c in UNUSUAL}
    x = torch.rand(32, 50) + 1
    zeroed, equal = x.clone(), x.clone()
    contents["a zero in each row"].apply([zeroed])
    contents["some values equal to the one before"].apply([equal])
    assert bool(((zeroed == 0).sum(-1) == 1).all())
    same = equal == x
    assert bool((same | (equal == x.roll(1, -1))).all())
    assert 0.1 < 1 - float(same.float().mean()) < 0.4


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16])
def test_nan_has_either_sign(dtype):
    (content,) = [c for c in UNUSUAL if c.name == "some NaN"]
    x = torch.randn(400, 500).to(dtype)
    made = x.clone()
    content.apply([made])
    nan = made.isnan()
    assert 0 < int(made[nan].signbit().sum()) < int(nan.sum()) < 400
    assert torch.equal(made[~nan], x[~nan])
