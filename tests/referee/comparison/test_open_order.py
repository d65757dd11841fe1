"""Which tensor that the reference orders says that another index is right."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from agentforge.referee.baselines.dispatch import NextPlaces
from agentforge.referee.baselines.operators import Operators
from agentforge.referee.comparison.open_order import OpenOrder
from agentforge.schema import EvaluationStatus

from ..judging import judge, problem

Function = Callable[..., torch.Tensor]


def same(function: Function, inputs: Sequence[torch.Tensor], ours: torch.Tensor) -> torch.Tensor:
    """Which of all indices select the same as those of a function."""
    with Operators() as seen:
        theirs = function(*inputs)

    def with_next_places(operator: int) -> torch.Tensor:
        with NextPlaces(operator):
            return function(*inputs)

    order = OpenOrder(lambda: inputs, lambda of: function(*of), lambda: seen.ordered, with_next_places)
    wrong = torch.arange(theirs.numel())
    return order.same(ours.reshape(-1), theirs.reshape(-1), wrong, 0, tuple(theirs.shape)).view(theirs.shape)


def best(x: torch.Tensor) -> torch.Tensor:
    """Orders flags too, and their places reach no output."""
    mostly = x.isnan().byte().median(dim=1, keepdim=True).values.bool()
    return x.topk(4, dim=1).indices.masked_fill(mostly, -1)


def best_of_two(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return torch.cat([x.topk(2, dim=1).indices, y.topk(2, dim=1).indices], 1)


def projected(x: torch.Tensor) -> torch.Tensor:
    """Inputs have the shape of the values that are ordered, but other values."""
    return (x.clamp(min=0) @ torch.arange(100.0).reshape(10, 10).sin()).topk(4, dim=1).indices


def backwards(x: torch.Tensor) -> torch.Tensor:
    return 9 - x.flip(1).cummax(1).indices


@given(st.integers(0, 1 << 30))
def test_only_what_decides_the_output_counts(seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    x = torch.randint(0, 6, (8, 10), generator=generator).float()
    first = torch.arange(4).repeat(8, 1)
    equal = x.gather(1, first) == x.topk(4, dim=1).values
    assert torch.equal(same(best, [x], first), equal)
    other = 9 - x.flip(1).sort(dim=1, descending=True, stable=True).indices[:, :4]
    assert same(best, [x], other).all()
    two = torch.cat([other[:, :2], other[:, :2]], 1)
    assert same(best_of_two, [x, x.clone()], two).all()


@given(st.integers(0, 1 << 30))
def test_equal_inputs_are_not_enough_if_what_is_ordered_differs(seed: int) -> None:
    x = torch.randn(8, 10, generator=torch.Generator().manual_seed(seed)).clamp(min=0)  # half of it is zero
    theirs = projected(x)
    assert not same(projected, [x], theirs.roll(1, dims=1))[x.any(1)].any()


def test_an_index_that_counts_from_the_end_is_compared_by_the_inputs() -> None:
    x = torch.tensor([[1.0, 3.0, 3.0, 2.0, 2.0, 0.0, 1.0, 1.0, 0.0, 0.0]])
    theirs = backwards(x)
    ours = theirs.clone()
    ours[0, -1] = 3 - theirs[0, -1]
    assert same(backwards, [x], ours).all()


BEST = problem(
    "mostly = x.isnan().byte().median(dim=1, keepdim=True).values.bool()\n"
    "return x.topk(8, dim=1).indices.masked_fill(mostly, -1)",
    "torch.randint(0, 100, (64, 128)).float()",
)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "status"),
    [
        (
            ("x.topk(8, dim=1).indices", "x.sort(dim=1, descending=True, stable=True).indices[:, :8]"),
            EvaluationStatus.PASSED,
        ),
        (("x.topk(8, dim=1).indices", "torch.arange(8).repeat(64, 1)"), EvaluationStatus.INCORRECT_NUMERICAL),
    ],
)
def test_flags_that_are_ordered_too_excuse_nothing(referee, change, status) -> None:  # type: ignore[no-untyped-def]
    assert judge(referee, BEST, change).status is status
