"""A layout is that of tensors for which torch's operators give results of the captured layout."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch._prims_common import suggest_memory_format

from agentforge.stitch.runtime.layout import Layout, channels_last

from .making import same, stitch_in_process
from .test_runtime import both, engaged

_CONVOLVES = """
import torch


class Model(torch.nn.Module):
    def __init__(self, dimensions):
        super().__init__()
        kind = (torch.nn.Conv1d, torch.nn.Conv2d, torch.nn.Conv3d)[dimensions - 1]
        self.first = kind(1, 4, 3)

    def forward(self, x):
        y = self.first(x)
        return (torch.sigmoid(y) * 2).flatten(1)


def get_inputs():
    return [torch.randn(SHAPE)]


def get_init_inputs():
    return [len(SHAPE) - 2]
"""


@pytest.mark.parametrize("shape", [(2, 1, 8), (2, 1, 8, 8), (2, 1, 4, 8, 8)])
def test_one_channel_in_channels_last_strides_runs_the_original(
    tmp_path: Path, shape: tuple[int, ...]
) -> None:
    stitched = stitch_in_process(_CONVOLVES.replace("SHAPE", str(shape)), tmp_path / "artifact")
    original, optimized = both(stitched)
    ((x,), _) = stitched.inputs(0)
    turned = torch.empty_like(x.movedim(1, -1), memory_format=torch.contiguous_format).movedim(-1, 1).copy_(x)
    for given_, runs in ((x, True), (turned, False), (x, True)):
        output, ran = engaged(stitched, optimized, (given_,), {})
        assert ran is runs
        with torch.no_grad():
            assert same(output, original(x))


def test_other_strides_of_one_row_do_not_matter() -> None:
    layout = Layout((1, 3, 4, 4), (48, 16, 4, 1), torch.float32, "cpu")
    assert layout.holds(torch.empty(1, 3, 4, 4))
    assert layout.holds(torch.empty(2, 3, 4, 4)[::2])
    assert not layout.holds(torch.empty(1, 3, 4, 4).to(memory_format=torch.channels_last))


@given(st.lists(st.tuples(st.integers(1, 3), st.integers(0, 9)), min_size=4, max_size=5))
def test_channels_last_is_what_torch_takes_for_it(dimensions: list[tuple[int, int]]) -> None:
    shape, strides = zip(*dimensions, strict=True)
    found = suggest_memory_format(torch.empty_strided(shape, strides))
    assert channels_last(shape, strides) == (found is not torch.contiguous_format)
