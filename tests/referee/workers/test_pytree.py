"""Tensors of equal bits."""

from __future__ import annotations

import torch
from hypothesis import given
from hypothesis import strategies as st

from agentforge.referee.workers.pytree import same_bytes


@given(st.lists(st.integers(0, 3), max_size=3), st.integers(1, 3))
def test_strides_do_not_matter_to_bits(shape, step):
    dense = torch.randn(shape)
    wide = torch.empty(*reversed(shape), step)
    strided = wide[..., 0].permute(tuple(reversed(range(len(shape))))).copy_(dense)
    assert same_bytes(dense, strided)
    assert same_bytes(strided, dense)
    assert same_bytes(dense, -strided) == (not dense.numel())


def test_zeros_of_either_sign_differ_and_equal_nans_do_not():
    assert not same_bytes(torch.zeros(1), -torch.zeros(1))
    assert same_bytes(torch.full((1,), torch.nan), torch.full((1,), torch.nan))
