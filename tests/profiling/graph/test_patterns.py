from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from agentforge.profiling.graph.patterns import pattern_of


def made(expression: str) -> torch.Tensor:
    return eval(expression, {"torch": torch, "float": float})


@given(
    st.integers(2, 9),
    st.integers(2, 9),
    st.integers(-3, 3),
    st.booleans(),
    st.sampled_from(["bool", "additive", "ones", "huge"]),
)
def test_triangles_come_back_exactly(rows, columns, offset, lower, kind):
    ones = torch.ones(rows, columns, dtype=torch.bool)
    mask = ones.tril(offset) if lower else ones.triu(offset)
    tensor = {
        "bool": mask,
        "additive": torch.where(mask, 0.0, float("-inf")),
        "ones": mask.float(),
        "huge": torch.where(mask, torch.finfo(torch.float32).min, 0.0),
    }[kind][None, None].expand(2, 3, rows, columns)
    expression = pattern_of(tensor)
    if mask.all() or not mask.any():
        return  # no triangle is left of it
    corner = bool(mask[-1, 0]) != bool(mask[0, -1])
    assert (expression is not None) or not corner or kind in ("bool", "ones", "additive", "huge")
    if expression is not None and "rand" not in expression:
        assert torch.equal(made(expression), tensor)
    if corner:
        assert expression is not None


@given(st.integers(2, 40), st.integers(-5, 5), st.integers(1, 7))
def test_positions_and_offsets(n, start, step):
    tensor = (torch.arange(n) * step + start).expand(3, n)
    assert torch.equal(made(pattern_of(tensor)), tensor)


def test_a_random_additive_mask_leaves_no_row_empty():
    mask = torch.where(torch.rand(4, 1, 8, 8) < 0.6, float("-inf"), 0.0)
    expression = pattern_of(mask)
    assert expression is not None
    drawn = made(expression)
    assert drawn.shape == mask.shape
    assert set(drawn.unique().tolist()) == {float("-inf"), 0.0}
    assert torch.isfinite(drawn).any(-1).all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
@pytest.mark.parametrize("floor", [float("-inf"), -1e9])
def test_a_bias_under_a_causal_mask_keeps_the_mask_and_its_own_spread(dtype, floor):
    visible = torch.ones(64, 64, dtype=torch.bool).tril()
    slopes = torch.tensor([0.5, 0.25])[:, None, None]
    distance = torch.arange(64) - torch.arange(64)[:, None]
    bias = torch.where(visible, slopes * distance, floor)[None].to(dtype)
    expression = pattern_of(bias)
    assert expression is not None
    drawn = made(expression)
    assert drawn.dtype is dtype
    shown = visible.expand(bias.shape)
    assert torch.equal(drawn < -9e8, ~shown)
    assert drawn[shown].double().mean().item() == pytest.approx(bias[shown].double().mean().item(), rel=0.1)
    assert drawn[shown].double().std().item() == pytest.approx(bias[shown].double().std().item(), rel=0.1)


def test_a_bias_with_padding_is_hidden_at_random_places():
    bias = torch.randn(3, 1, 8, 16)
    bias[1, ..., 12:] = torch.finfo(torch.float32).min
    drawn = made(pattern_of(bias))
    assert 0 < (drawn < -9e8).sum() < bias.numel() / 2
    assert (drawn[..., 0] > -10).all()


def test_a_mask_that_begins_after_the_first_sample_is_one():
    mask = torch.zeros(2, 1, 4, 8)
    mask[1, ..., 5:] = float("-inf")
    assert set(made(pattern_of(mask)).unique().tolist()) <= {float("-inf"), 0.0}


@pytest.mark.parametrize(
    "tensor",
    [
        torch.randn(4, 4),
        torch.ones(4),
        torch.ones(4, 4),
        torch.randint(0, 9, (50,)),
        torch.zeros(0, 4),
        torch.rand(8, 8) > 0.5,
        torch.tensor(3),
    ],
)
def test_no_pattern(tensor):
    assert pattern_of(tensor) is None


@pytest.mark.parametrize("sizes", [[0, 3, 0, 9], [4, 0, 1], [0, 1, 0, 0, 1], [0, *range(600)]])
def test_ends_of_groups_exchange_their_sizes(sizes):
    tensor = torch.tensor(sizes, dtype=torch.int32).cumsum(0, dtype=torch.int32)
    drawn = made(pattern_of(tensor))
    assert drawn.dtype == torch.int32
    assert (drawn[0] == 0) == (tensor[0] == 0) or sizes[0]
    assert drawn[-1] == tensor[-1]
    assert (drawn.diff() >= 0).all()
    if len(sizes) < 512:
        assert sorted(drawn.diff(prepend=torch.zeros(1, dtype=torch.int32)).tolist()) == sorted(sizes)
