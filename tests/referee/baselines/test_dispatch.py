"""What the operators of a reference leave open."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from agentforge.referee.baselines.dispatch import NextPlaces, OtherOrder, OtherSigns, alike
from agentforge.referee.baselines.operators import Operators
from agentforge.schema import TargetError

from ..judging import WORKLOAD, problem

X = torch.randn(3, 6, 4, generator=torch.Generator().manual_seed(5))
SQUARE = X.mT @ X


@pytest.mark.parametrize(
    ("function", "found"),
    [
        (lambda x: x.topk(2), 1),
        (lambda x: x.sort(), 1),
        (lambda x: x.sort(stable=True), 0),
        (lambda x: x.cummax(1), 1),
        (lambda x: (x + 1).cummin(1), 1),
        (lambda x: x.max(1), 0),
    ],
)
def test_what_an_open_order_is_of(function: Callable[[torch.Tensor], object], found: int) -> None:
    with Operators() as seen:
        function(X)
    assert len(seen.ordered) == found


EQUALS = torch.randint(0, 3, (5, 8), generator=torch.Generator().manual_seed(3)).float()


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.topk(4),
        lambda x: x.topk(3, 0, largest=False),
        lambda x: x.sort(descending=True),
        lambda x: torch.sort(x, dim=0),
        lambda x: x.kthvalue(2),
        lambda x: torch.mode(x, 1),
        lambda x: x.cummax(1),
        lambda x: x.sort(stable=True),
    ],
)
def test_another_order_selects_the_same_values(function: Callable[[torch.Tensor], Any]) -> None:
    for x in (EQUALS, X[0]):
        values, places = function(x)
        with OtherOrder():
            found = function(x)
        assert torch.equal(found[0], values)
        for operator in (0, 1):
            with NextPlaces(operator):
                moved = function(x)
            assert torch.equal(moved[0], values)
            if operator == 1:
                assert torch.equal(moved[1], places)


def test_which_answers_depend_on_an_open_order() -> None:
    def kept(x: torch.Tensor) -> torch.Tensor:
        values, places = x.sort(dim=1, descending=True)
        return torch.zeros_like(x).scatter(1, places[:, :4], values[:, :4])

    for x, depends in ((torch.ones(3, 9), True), (torch.zeros(3, 9), False), (torch.randn(3, 9), False)):
        before = kept(x)
        with OtherOrder():
            assert torch.equal(before, kept(x)) is not depends
        with NextPlaces(0):
            assert torch.equal(before, kept(x)) is not bool(x.any())
    assert torch.ones(9).median() == 1  # no dimension
    with OtherOrder(), NextPlaces(0):
        assert torch.ones(9).median() == 1


@pytest.mark.parametrize(
    ("function", "depends"),
    [
        (lambda: torch.linalg.qr(X)[0], True),
        (lambda: torch.linalg.qr(X, mode="r")[1], True),
        (lambda: torch.linalg.qr(X, mode="complete")[0], True),
        (lambda: torch.matmul(*torch.linalg.qr(X, mode="complete")), False),
        (lambda: torch.linalg.svd(X).Vh, True),
        (lambda: torch.linalg.svdvals(X), False),
        (lambda: (lambda u, s, v: u * s[:, None] @ v)(*torch.linalg.svd(X, full_matrices=False)), False),
        (lambda: torch.linalg.eigh(SQUARE).eigenvectors, True),
        (lambda: (lambda w, v: v * w[:, None] @ v.mT)(*torch.linalg.eigh(SQUARE)), False),
        (lambda: torch.linalg.eig(SQUARE).eigenvectors, True),
        (lambda: torch.linalg.pinv(X), False),
    ],
)
def test_which_answers_depend_on_open_signs(function: Callable[[], torch.Tensor], depends: bool) -> None:
    before = function()
    with OtherSigns():
        after = function()
    assert alike(before, after) is not depends


def test_a_task_whose_signs_are_open_is_refused(referee) -> None:  # type: ignore[no-untyped-def]
    inputs = "torch.randn(8, 16, 4)"
    with pytest.raises(TargetError, match="signs of the vectors"):
        referee.baselines(problem("return torch.linalg.qr(x)", inputs), [WORKLOAD])
    assert referee.baselines(problem("return torch.linalg.qr(x)[0].square()", inputs), [WORKLOAD])
