"""Computing a reference in double precision."""

from __future__ import annotations

import pytest
import torch

from agentforge.referee.baselines.precision import default_dtype


@pytest.mark.parametrize("draw", [torch.rand, torch.randn])
@pytest.mark.parametrize("dtype", [None, torch.float32, torch.float64])
def test_a_seeded_generator_draws_the_same_in_double_precision(draw, dtype):
    usual = draw(64, generator=torch.Generator().manual_seed(7), dtype=dtype)
    with default_dtype(torch.float64):
        wide = draw(64, generator=torch.Generator().manual_seed(7), dtype=dtype)
        assert torch.ones(1).dtype is torch.float64
    assert wide.dtype is (dtype or torch.float64)
    assert torch.equal(wide, usual.to(wide.dtype))
    assert torch.ones(1).dtype is torch.float32
