"""Few elements of a rounded output may each be on the other side of a tie."""

from __future__ import annotations

from functools import partial

import pytest
import torch

from agentforge.referee.comparison.allowance import Allowance
from agentforge.referee.comparison.tolerance import Bound
from agentforge.referee.workers.pytree import Leaf
from agentforge.schema import EvaluationStatus

from ..judging import judge, problem

BOUND = Bound(1e-6, 4e-6, 0.0, 1e-7)
EXPECTED = torch.arange(1.0, 4001.0)


def allowed(
    got: torch.Tensor, *ways: torch.Tensor, first: int = 0, count: int = 4000, bound: Bound = BOUND
) -> bool:
    leaf = Leaf("out", EXPECTED[:count], recomputed=lambda: iter(ways))
    allowance = Allowance.of(leaf, bound, 2310.0)
    expected = EXPECTED[first : first + got.numel()]
    return allowance.measure(got, expected, first).within(allowance.bound)


def stepped(*places: int, by: float = 1.0) -> torch.Tensor:
    changed = EXPECTED.clone()
    changed[list(places)] += by
    return changed


def test_each_element_may_have_the_value_of_another_way() -> None:
    got = stepped(7, 9)
    assert allowed(EXPECTED)
    assert not allowed(got)
    assert not allowed(got, EXPECTED, stepped(7))
    assert allowed(got, stepped(7), EXPECTED, stepped(9).double())
    assert allowed(got[5:15], stepped(7, 9), first=5) is False  # two of ten are not few
    assert allowed(got[8:15], stepped(7, 9), first=8)
    assert not allowed(got, *[EXPECTED] * 9, stepped(7, 9))  # the first nine explain nothing


def test_neither_another_value_nor_many_elements_nor_a_small_output() -> None:
    assert not allowed(stepped(7, by=0.5), stepped(7))
    many = stepped(*range(0, 90, 10))
    assert not allowed(many, many)
    assert allowed(stepped(7)[:500], stepped(7), count=500)
    assert not allowed(stepped(7)[:499], stepped(7), count=499)


@pytest.mark.parametrize("count", [400, 4000])
def test_an_answer_near_float64_is_right_however_far_the_reference_is(count: int) -> None:
    exact, rough = 1.1 * EXPECTED.double(), partial(allowed, count=count, bound=Bound(0.05, 0.05, 0.0, 0.1))
    assert rough(1.1 * EXPECTED[:count], exact[:count])
    assert rough(1.1 * EXPECTED[10:90], exact[:count], first=10)
    assert not rough(1.101 * EXPECTED[:count], exact[:count])
    assert not rough(1.1 * EXPECTED[:count], exact[:count].float())  # inputs that moved
    assert not rough(1.1 * EXPECTED[:count])
    assert not allowed(
        1.1 * EXPECTED[:count], exact[:count], count=count
    )  # an exact reference is the measure


def moved(*places: int, by: float) -> list[torch.Tensor]:
    """Nine ways in which these elements take different values, up to `by` from the usual one."""
    return [stepped(*places, by=by * way / 9) for way in range(1, 10)]


def test_an_element_that_moves_with_its_inputs_may_have_any_value_among_its_own() -> None:
    assert allowed(stepped(7, by=0.55), *moved(7, by=1.0))
    assert not allowed(stepped(7, by=-0.6), *moved(7, by=1.0))
    assert not allowed(stepped(7, by=1.7), *moved(7, by=1.0))
    assert not allowed(stepped(7, 8, by=0.55), *moved(7, by=1.0))
    assert not allowed(stepped(7, by=0.5), *moved(7, by=1.0)[:8])  # too few ways


def test_few_elements_that_make_the_norm_too_large() -> None:
    bound = Bound(1e-6, 0.1, 100.0, 1e-7)  # each element is near enough by itself
    leaf = Leaf("out", EXPECTED, recomputed=lambda: iter(moved(7, 9, by=1.0)))
    allowance = Allowance.of(leaf, bound)
    assert not Allowance(bound).measure(stepped(7, 9, by=0.55), EXPECTED).within(bound)
    assert allowance.measure(stepped(7, 9, by=0.55), EXPECTED).within(bound)
    assert not allowance.measure(stepped(7, 10, by=0.55), EXPECTED).within(bound)
    assert not allowance.measure(stepped(*range(9), by=0.55), EXPECTED).within(bound)


STEPS = problem(
    "s = x.abs().amax(1, keepdim=True) / 127\nreturn torch.round(x / s) * s",
    "torch.randn(64, 2048)",
)


@pytest.mark.parametrize(
    ("change", "status"),
    [
        (("torch.round(x / s)", "torch.round(x * (127 / x.abs().amax(1, keepdim=True)))"), "PASSED"),
        (("torch.round(x / s)", "torch.round(x / s * (1 + 1e-4))"), "INCORRECT_NUMERICAL"),
    ],
    ids=["by reciprocal", "off scale"],
)
def test_a_rounded_output(referee, change, status) -> None:  # type: ignore[no-untyped-def]
    assert judge(referee, STEPS, change).status is EvaluationStatus(status)
