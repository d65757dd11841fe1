"""Computing a reference in double precision."""

from __future__ import annotations

import pytest
import torch

from agentforge.referee.baselines.precision import default_dtype, wide


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


def test_padding_is_left_out_in_double_precision_as_in_single():
    layer = torch.nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
    model = torch.nn.TransformerEncoder(layer, 2).eval()
    x, padding = torch.randn(2, 6, 16), torch.arange(6) >= torch.tensor([[6], [4]])
    with torch.no_grad():
        usual = model(x, src_key_padding_mask=padding)
        with default_dtype(torch.float64):
            exact = wide(model)(x.double(), src_key_padding_mask=padding)
    assert exact.dtype is torch.float64
    assert not exact[1, 4:].any()
    assert float((usual - exact).abs().max()) < 64 * torch.finfo(torch.float32).eps


def test_a_tensor_of_another_class_is_still_overridden():
    class Marked(torch.Tensor):
        pass

    overridden = torch.overrides.has_torch_function
    with pytest.raises(ZeroDivisionError), default_dtype(torch.float64):
        assert torch.overrides.has_torch_function((torch.ones(1), torch.ones(1).as_subclass(Marked)))
        assert not torch.overrides.has_torch_function((torch.ones(1),))
        raise ZeroDivisionError
    assert torch.overrides.has_torch_function is overridden
