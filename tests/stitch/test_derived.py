"""Weights are recognised by sums of their words."""

from __future__ import annotations

import pytest
import torch

from agentforge.stitch.runtime.derived import Contents


@pytest.mark.parametrize("shape", [(2048, 512), (1100, 17), (32, 4099)])
@pytest.mark.parametrize("dimension", [0, 1])
def test_rows_and_columns_that_change_places_are_noticed(shape: tuple[int, int], dimension: int) -> None:
    weight = torch.randn(shape)
    contents = Contents([weight])
    assert contents.same([weight])
    for other in range(1, shape[dimension], 10):
        for index in (torch.tensor([0, other]), torch.tensor([other, 0])):
            swapped = weight.index_select(dimension, index.flip(0))
            weight.data.index_copy_(dimension, index, swapped)
            if index[0] == 0:
                assert not contents.same([weight])
    assert contents.same([weight])
