"""Tensors of equal bits."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from agentforge.referee.workers.failures import UnusableOutput
from agentforge.referee.workers.pytree import MAX_LEAVES, flatten, same_bytes


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


@pytest.mark.parametrize(
    ("output", "said"),
    [
        ([torch.ones(2, dtype=torch.uint16)], r"out\[0\] has the type torch.uint16"),
        (torch.ones(2, dtype=torch.uint32), "out has the type torch.uint32"),
        ([0] * (MAX_LEAVES + 1), "return at most 4096"),
    ],
)
def test_what_cannot_be_compared_is_said_by_the_worker_itself(output: object, said: str) -> None:
    with pytest.raises(UnusableOutput, match=said):
        flatten(output)
    assert len(flatten([0] * MAX_LEAVES)) == MAX_LEAVES
