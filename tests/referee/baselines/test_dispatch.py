"""What the operators of a reference leave open."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from agentforge.referee.baselines.dispatch import OtherSigns, alike
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
