"""For which contents the reference's answer counts."""

from __future__ import annotations

import pytest

from agentforge.referee.baselines.answers import right_answer
from agentforge.referee.inputs.transforms import UNUSUAL, Answer
from agentforge.schema import Definition

from ..judging import WORKLOAD, problem

CONTENTS = {content.name: content for content in UNUSUAL}
LINEAR = "self.linear = torch.nn.Linear(16, 16)"
SINGLE = problem("return torch.logcumsumexp(self.linear(x.float()), 1)", "torch.randn(8, 32, 16)", LINEAR)
"""Raises in float64: its weights are double, and its inputs are not."""
OVERFLOWS = problem("return self.linear(x.float()).exp().sum(1).log()", "torch.randn(8, 32, 16)", LINEAR)
SPARSE = problem("v, i = x.topk(4, 1)\nreturn torch.zeros_like(x).scatter(1, i, v)", "torch.randn(8, 32)")
VALUES = problem("return x.topk(4, 1).values, x.sort(1).values.sum(1)", "torch.randn(8, 32)")


def answer(referee, task: Definition, name: str) -> Answer | None:  # type: ignore[no-untyped-def]
    baselines = referee.baselines(task, [WORKLOAD])
    prepared = baselines.prepared[0]
    baselines.enter(prepared)
    prepared.inputs.fill(0)
    CONTENTS[name].apply(prepared.inputs.tensors(0))
    return right_answer(baselines, prepared, CONTENTS[name])


@pytest.mark.parametrize("name", ["inputs 64 times as large", "zeros", "some NaN", "one row below 2**-50"])
def test_a_reference_that_float64_cannot_run_shows_gross_errors(referee, name: str) -> None:  # type: ignore[no-untyped-def]
    found = answer(referee, SINGLE, name)
    assert found is not None
    assert found.bounds[0].relative >= 1e-3
    assert found.equal == [False]


def test_where_such_a_reference_overflows_its_answer_does_not_count(referee) -> None:  # type: ignore[no-untyped-def]
    assert answer(referee, OVERFLOWS, "values up to 1024") is None


@pytest.mark.parametrize(
    ("task", "name", "counts"),
    [
        (SPARSE, "equal values", False),
        (SPARSE, "zeros", True),
        (SPARSE, "negated inputs", True),
        (VALUES, "equal values", True),
        (VALUES, "some NaN", True),
    ],
)
def test_an_answer_counts_if_no_order_among_equals_decides_it(  # type: ignore[no-untyped-def]
    referee, task: Definition, name: str, counts: bool
) -> None:
    assert (answer(referee, task, name) is not None) is counts
