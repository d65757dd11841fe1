"""The error of a small output may be none by chance."""

from __future__ import annotations

import statistics

import pytest
import torch

from agentforge.referee.baselines.nearby import NotDefined, bounds_nearby
from agentforge.referee.comparison.tolerance import Bound

from ..judging import WORKLOAD, problem

CANCELS = problem("return x.sum() - 18400, x * 2", "torch.randint(1, 9, (4096,)).float()")
VANISHES = problem(
    "k = torch.arange(3.0, 40.0, 2.0)\nreturn (x * k[:, None]).sum(1) - x.sum() * k + x.sum() * 2.0**-20",
    "torch.rand(4096) + 1",
)
"""Of many sums, some are rounded in another way wherever the inputs move."""


@pytest.mark.slow
def test_a_sum_that_is_exact_by_chance_may_err_as_it_does_nearby(referee) -> None:  # type: ignore[no-untyped-def]
    baselines = referee.baselines(CANCELS, [WORKLOAD])
    prepared = baselines.prepared[0]
    prepared.inputs.fill(0)
    baselines.expect(prepared, 0)
    own, wider = baselines.error_bounds(prepared, 0), baselines.bounds_for(prepared, 0)
    assert own[0].reference_error == 0.0
    assert wider[0].relative > own[0].relative
    assert wider[1] == own[1]  # many elements: chance evens out


@pytest.mark.slow
def test_an_answer_that_is_chance_nearby_is_not_defined(referee) -> None:  # type: ignore[no-untyped-def]
    baselines = referee.baselines(VANISHES, [WORKLOAD])
    prepared = baselines.prepared[0]
    prepared.inputs.tensors(0)[0].copy_(torch.ones(4096))
    baselines.expect(prepared, 0)
    bounds = baselines.error_bounds(prepared, 0)
    with pytest.raises(NotDefined):
        bounds_nearby(baselines, prepared, 0, bounds, every=False)
    assert baselines.bounds_for(prepared, 0) == bounds


@pytest.mark.parametrize("signed", [False, True])
def test_a_long_sum_that_cancels_may_be_summed_in_fewer_parts(referee, signed: bool) -> None:  # type: ignore[no-untyped-def]
    inputs = ("torch.randn" if signed else "torch.rand") + "(1 << 16)"
    baselines = referee.baselines(problem("return x.sum(), x * 2", inputs), [WORKLOAD])
    prepared = baselines.prepared[0]
    x = prepared.inputs.tensors(0)[0]
    x.copy_(x - x.mean() + 1 / 4096 if signed else x)
    baselines.expect(prepared, 0)
    own, wider = baselines.error_bounds(prepared, 0), baselines.bounds_for(prepared, 0)
    half = x.half().float().sum().item() / x.sum().item() - 1
    assert wider[0].relative < max(abs(half), 2**-12)
    assert (wider[0].relative > 2 * own[0].relative) is signed
    assert wider[1] == own[1]


@pytest.mark.slow
def test_chance_hardly_decides_how_far_one_number_may_be_off(referee) -> None:  # type: ignore[no-untyped-def]
    """Four draws of how far a sum moves are small by chance once in some hundred calls."""
    baselines = referee.baselines(problem("return x.sum()", "torch.randn(1 << 14)"), [WORKLOAD])
    prepared = baselines.prepared[0]
    x = prepared.inputs.tensors(0)[0]
    x.copy_(x - x.mean() + 1 / 4096)
    baselines.expect(prepared, 0)
    bounds = [Bound(1e-12, 0.0, 0.0, 0.0)]
    found = [bounds_nearby(baselines, prepared, 0, bounds, every=False)[0].relative for _ in range(200)]
    assert min(found) > 0.35 * statistics.median(found)
