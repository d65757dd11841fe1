"""Integers are exact, except where rounding or an order among equals decides."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from agentforge.referee.comparison.integers import IntegerLatitude
from agentforge.referee.comparison.open_order import OpenOrder
from agentforge.schema import EvaluationStatus, Evidence

from ..judging import WORKLOAD, judge, problem


def latitude(
    others: Sequence[torch.Tensor] = (),
    inputs: Sequence[torch.Tensor] | None = None,
    shape: Sequence[int] = (),
) -> IntegerLatitude:
    order = None if inputs is None else OpenOrder(lambda: inputs)
    return IntegerLatitude(lambda: iter(others), order, tuple(shape))


def right(latitude: IntegerLatitude, got: torch.Tensor, expected: torch.Tensor, first: int = 0) -> bool:
    return torch.equal(latitude.settled(got, expected, first), got)


@given(st.integers(0, 9), st.integers(-3, 3))
def test_an_undecided_element_may_have_any_value_seen(place: int, step: int) -> None:
    expected = torch.arange(10)
    other = expected.clone()
    other[4] += 2
    got = expected.clone()
    got[place] += step
    assert right(latitude([expected, other]), got, expected) is (step == 0 or (place, step) == (4, 2))
    part = latitude([other]).settled(got[3:6], expected[3:6], 3)
    assert torch.equal(part, got[3:6]) is (step == 0 or not 3 <= place < 6 or (place, step) == (4, 2))


@pytest.mark.parametrize(
    ("wrong", "step", "accepted"), [(1, 1, True), (2, -1, True), (3, 1, False), (1, 2, False)]
)
def test_one_element_in_100000_may_be_one_step_off(wrong: int, step: int, accepted: bool) -> None:
    expected = torch.zeros(200_000, dtype=torch.int32)
    got = expected.clone()
    got[:wrong] += step
    undecided = expected.clone()
    undecided[-3:] += 1
    assert right(latitude([expected, undecided]), got, expected) is accepted
    assert not right(latitude([expected] * 41), got, expected)  # rounding decides nothing here
    exact = IntegerLatitude(lambda: iter([got]), rounds=False)
    assert not right(exact, got, expected)


@pytest.mark.parametrize(("wrong", "step", "accepted"), [(1, 1, True), (1, 2, False), (3, 1, False)])
def test_few_elements_one_step_off_are_looked_at_more_often(wrong: int, step: int, accepted: bool) -> None:
    expected = torch.zeros(2000, dtype=torch.int32)
    got = expected.clone()
    got[:wrong] += step
    assert right(latitude([*[expected] * 30, got]), got, expected) is accepted
    assert right(latitude([*[expected] * 8, got]), got, expected)


TENS = problem("return x // 10", "torch.randint(0, 1 << 30, (400, 500))")
SIGNS = problem("return x > 0, x1 // 10", "torch.randn(64), torch.randint(0, 99, (64,))")


@pytest.mark.slow
def test_integers_alone_are_exact(referee) -> None:
    one_off = (
        "x // 10",
        "torch.where(torch.arange(500) + 500 * torch.arange(400)[:, None] == 7, 1, 0) + x // 10",
    )
    evaluation = judge(referee, TENS, one_off)
    assert evaluation.status is EvaluationStatus.INCORRECT_NUMERICAL
    assert judge(referee, TENS).status is EvaluationStatus.PASSED
    assert referee.baselines(SIGNS, [WORKLOAD]).prepared[0].rounds


def test_a_boolean_is_one_of_two_bytes() -> None:
    expected = torch.zeros(200_000, dtype=torch.bool)
    got = expected.clone()
    got[7] = True
    asked = latitude([torch.arange(200_000) == 9])  # rounding decides another element
    assert right(asked, got, expected)
    hidden = got.view(torch.uint8).clone()
    hidden[7] = 2
    assert not torch.equal(asked.settled(hidden.view(torch.bool), expected).view(torch.uint8), hidden)


X = torch.tensor([[3.0, 1.0, 3.0, 2.0], [5.0, 5.0, 5.0, 5.0]])


@pytest.mark.parametrize(
    ("got", "accepted"),
    [
        ([[2, 0], [3, 1]], True),
        ([[0, 2], [1, 0]], True),
        ([[0, 3], [0, 1]], False),
        ([[0, 0], [0, 1]], False),
        ([[0, 2], [1, 1]], False),
        ([[0, 2], [0, 9]], False),
        ([[0, 2], [0, -1]], False),
    ],
)
def test_indices_of_equal_values_are_right_if_none_repeats(got: list[list[int]], accepted: bool) -> None:
    expected = torch.tensor([[0, 2], [0, 1]])
    assert right(latitude(inputs=[X], shape=(2, 2)), torch.tensor(got), expected) is accepted
    if got != expected.tolist():
        assert not right(latitude(), torch.tensor(got), expected)


def test_an_index_without_its_dimension_and_a_part_of_indices() -> None:
    expected = torch.tensor([0, 0])
    order = latitude(inputs=[X], shape=(2,))
    assert right(order, torch.tensor([2, 3]), expected)
    assert not right(order, torch.tensor([3, 3]), expected)
    assert right(order, torch.tensor([3]), torch.tensor([0]), first=1)
    assert not right(order, torch.tensor([3]), torch.tensor([0]), first=0)


def choices(scores: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """The mask is for the scores; the third input of a task has nothing to do with either."""
    return scores.masked_fill(~mask, -torch.inf).topk(4, dim=1).indices


@given(st.integers(0, 1 << 30), st.booleans())
def test_the_reference_says_which_of_several_inputs_count(seed: int, beside: bool) -> None:
    generator = torch.Generator().manual_seed(seed)
    scores = torch.randint(0, 12, (16, 10), generator=generator).float()
    mask = torch.rand(16, 10, generator=generator) < 0.5  # four are not always allowed
    inputs = [scores, mask, *[torch.rand(16, 10, generator=generator)] * beside]
    order = OpenOrder(lambda: inputs, lambda tensors: choices(*tensors[:2]))
    asked = IntegerLatitude(lambda: iter(()), order, (16, 4))
    expected, hidden = choices(scores, mask), scores.masked_fill(~mask, -torch.inf)
    stable = hidden.sort(dim=1, descending=True, stable=True).indices[:, :4]
    assert right(asked, stable, expected)
    assert right(asked, 9 - hidden.flip(1).sort(dim=1, descending=True, stable=True).indices[:, :4], expected)
    allowed = mask.byte().argsort(dim=1, descending=True, stable=True)[:, :4]
    accepted = (asked.settled(allowed, expected) == allowed).all(1)
    assert torch.equal(accepted, (hidden.gather(1, allowed) == hidden.gather(1, expected)).all(1))


# -- whole verdicts


QUANTISE = problem(
    "s = x.abs().amax(1, keepdim=True) / 127\nreturn torch.round(x / s).to(torch.int8), s",
    "torch.randint(-2048, 2048, (64, 2048)).float() / 16",
)
SIGNS = problem("return x @ x1 > 0", "torch.randn(64, 512), torch.randn(512, 64)")
TOP = problem("return torch.topk(x, 8, dim=1)", "torch.randint(0, 40, (32, 256)).float()")
ORDER = problem("return torch.sort(x, dim=1)", "torch.randint(0, 9, (16, 64))")
STABLE = problem("return torch.sort(x, dim=1, stable=True)", "torch.randint(0, 9, (16, 64)).float()")
ROUTER = problem(
    "return torch.topk(self.linear(x), 2, dim=1)",
    "torch.randn(32, 16)",
    "self.linear = torch.nn.Linear(16, 8)",
)
MASKED = problem(
    "return x.masked_fill(x1 > 0, -torch.inf).topk(4, dim=1).indices",
    "torch.randint(0, 40, (32, 16)).float(), torch.randint(0, 2, (32, 16))",
)
HIDDEN = problem("return torch.topk(torch.where(x > 1, x, 1.0), 2)", "torch.randn(64, 16)")
RUNNING = problem("return torch.cummax(x, dim=1)", "torch.randint(0, 9, (16, 64)).float()")
FIRSTS = (
    "v = torch.cummax(x, dim=1).values\n        return v, (x[:, None, :] == v[:, :, None]).byte().argmax(2)"
)
BACKWARDS = "v, i = torch.sort(x.flip(1), dim=1, stable=True)\n        return v, x.shape[1] - 1 - i"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("task", "change"),
    [
        (QUANTISE, ("torch.round(x / s)", "torch.round(x * (127 / x.abs().amax(1, keepdim=True)))")),
        (SIGNS, ("x @ x1 > 0", "(x1.t().contiguous() @ x.t()).t() > 0")),
        (
            TOP,
            (
                "torch.topk(x, 8, dim=1)",
                "tuple(t[:, :8] for t in torch.sort(x, dim=1, descending=True, stable=True))",
            ),
        ),
        (ORDER, ("return torch.sort(x, dim=1)", BACKWARDS)),
        (STABLE, ("x, dim=1, stable=True", "x.clone(), dim=1, stable=True")),
        (MASKED, (".topk(4, dim=1).indices", ".sort(dim=1, descending=True, stable=True).indices[:, :4]")),
        (
            HIDDEN,
            (
                "return torch.topk(torch.where(x > 1, x, 1.0), 2)",
                "v, i = torch.where(x > 1, x, 1.0).sort(dim=1, descending=True, stable=True)\n"
                "        return v[:, :2], i[:, :2]",
            ),
        ),
        (RUNNING, ("return torch.cummax(x, dim=1)", FIRSTS)),
        (ROUTER, ("self.linear(x)", "(x @ self.linear.weight.t() + self.linear.bias)")),
    ],
    ids=["quantise", "signs", "topk", "sort", "stable", "masked", "hidden equals", "running", "router"],
)
def test_honest_answers_are_right(referee, task, change) -> None:
    evaluation = judge(referee, task, change)
    assert (evaluation.status, evaluation.evidence) == (EvaluationStatus.PASSED, Evidence.UNVERIFIED), (
        evaluation.reasons
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("task", "change"),
    [
        (QUANTISE, ("torch.round(x / s)", "torch.trunc(x / s)")),
        (QUANTISE, ("torch.round(x / s)", "torch.round(x / s * (1 + 1e-4))")),
        (SIGNS, ("x @ x1 > 0", "x.bfloat16() @ x1.bfloat16() > 0")),
        (
            TOP,
            (
                "return torch.topk(x, 8, dim=1)",
                "v, i = torch.topk(x, 8, dim=1)\n        return v, i[:, :1] + 0 * i",
            ),
        ),
        (
            TOP,
            ("return torch.topk(x, 8, dim=1)", "v, i = torch.topk(x, 8, dim=1)\n        return v, i.flip(1)"),
        ),
        (STABLE, ("return torch.sort(x, dim=1, stable=True)", BACKWARDS)),
        (MASKED, ("x.masked_fill(x1 > 0, -torch.inf)", "(x1 == 0).float()")),
        (
            HIDDEN,
            (
                "return torch.topk(torch.where(x > 1, x, 1.0), 2)",
                "v, i = torch.topk(torch.where(x > 1, x, 1.0), 2)\n        return v, i.flip(1)",
            ),
        ),
        (RUNNING, ("torch.cummax(x, dim=1)", "(v := torch.cummax(x, dim=1))[0], v[1] // 2")),
    ],
    ids=[
        "truncates",
        "off scale",
        "half precision",
        "one index",
        "other order",
        "not stable",
        "mask alone",
        "hidden",
        "running",
    ],
)
def test_wrong_answers_are_wrong(referee, task, change) -> None:
    assert judge(referee, task, change).status is EvaluationStatus.INCORRECT_NUMERICAL
