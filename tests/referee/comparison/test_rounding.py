"""16-bit answers that are rounded in one direction."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from agentforge.referee.comparison.rounding import rounds_one_way
from agentforge.referee.comparison.tolerance import derive
from agentforge.schema import TolerancePolicy

HALVES = [torch.bfloat16, torch.float16]


def cut(x: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Towards zero."""
    near = x.to(dtype)
    return torch.where(near.float().abs() > x.abs(), torch.nextafter(near, torch.zeros_like(near)), near)


def down(x: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    near = x.to(dtype)
    return torch.where(near.float() > x, torch.nextafter(near, torch.full_like(near, -torch.inf)), near)


def judged(got: torch.Tensor, exact: torch.Tensor) -> bool:
    right = exact.to(got.dtype)
    return rounds_one_way(got, right, derive(right, exact.double(), TolerancePolicy()))


@pytest.mark.slow
@pytest.mark.parametrize("dtype", HALVES)
@given(seed=st.integers(0, 2**30), scale=st.floats(1e-2, 1e3))
def test_what_is_cut_off_is_found_and_what_is_rounded_is_not(
    dtype: torch.dtype, seed: int, scale: float
) -> None:
    x = scale * torch.randn(8192, generator=torch.Generator().manual_seed(seed))
    assert judged(cut(x, dtype), x)
    assert judged(down(x, dtype), x)
    assert not judged(x.to(dtype), x)
    assert not judged((x * (1 + 1e-4 * torch.randn(8192))).to(dtype), x)
    assert not judged((x.to(dtype).float() * 1.1).to(dtype), x * 1.1)


@pytest.mark.parametrize("dtype", HALVES)
def test_a_sum_of_a_row_in_16_bits_is_allowed(dtype: torch.dtype) -> None:
    for seed in range(256):
        x = torch.randn(8192, generator=torch.Generator().manual_seed(seed)).exp()
        assert not judged((x / x.sum().to(dtype)).to(dtype), x / x.sum())


def test_few_values_infinities_and_other_types_say_nothing() -> None:
    x = torch.full((4096,), 1 / 3)
    assert not judged(cut(x, torch.float16), x)
    assert not judged(torch.full((4096,), torch.inf, dtype=torch.float16), torch.full((4096,), torch.inf))
    y = torch.randn(4096)
    assert not judged(y * 0.999, y)


def test_a_reference_that_rounds_often_has_its_own_direction() -> None:
    x = torch.randn(4096)
    right = x.bfloat16()
    rough = derive((right * 1.01).bfloat16(), x.double(), TolerancePolicy())
    assert not rounds_one_way(cut(x, torch.bfloat16), right, rough)
