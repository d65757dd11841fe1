"""Convolutions with epilogues: as torch computes them, and fused only if nothing else reads the result."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from agentforge.schema import MoveKind
from agentforge.stitch.runtime.products import EPILOGUES, PACKED, Products, convolution, followed

from .making import Choose, choose_all, stitch_in_process
from .test_moves import close, judged_moves, twins

pytestmark = pytest.mark.skipif(not torch.backends.mkldnn.is_available(), reason="torch without oneDNN")

NET = '''
import torch
import torch.nn.functional as F
from torch import nn


class Model(nn.Module):
    """A mobile network's blocks: expand, filter, gate, project, add."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, stride=2, padding=1)
        self.expand = nn.Conv2d(8, 16, 1, bias=False)
        self.norm = nn.BatchNorm2d(16)
        self.filter = nn.Conv2d(16, 16, 3, padding=1, groups=16)
        self.squeeze, self.gate = nn.Conv2d(16, 4, 1), nn.Conv2d(4, 16, 1)
        self.project = nn.Conv2d(16, 8, 1)
        self.last, self.shared, self.rectified = (nn.Conv2d(8, 8, 1) for _ in range(3))
        self.norm.running_mean.uniform_(-1.0, 1.0)
        self.norm.running_var.uniform_(0.5, 2.0)

    def forward(self, x):
        x = F.hardswish(self.stem(x))
        y = F.silu(self.norm(self.expand(x)))
        y = F.gelu(self.filter(y), approximate="tanh")
        y = y * torch.sigmoid(self.gate(F.gelu(self.squeeze(y.mean((2, 3), keepdim=True)))))
        x = x + self.project(y)
        z = torch.tanh(self.last(x)) * 2.0
        twice = self.shared(x)
        return z, torch.tanh(twice) + twice, F.relu(self.rectified(x)), self.last(x) + 1.0


def get_inputs():
    return [torch.randn(2, 3, 16, 16)]


def get_init_inputs():
    return []
'''
EVERY = tuple(MoveKind)
PLACES = {"fold_batch_norm": 1, "channels_last": 10, "fuse_epilogues": 7}
"""Not the convolution that is read twice, the ReLU's, and the one with a number added."""


@pytest.mark.slow
@pytest.mark.parametrize("choose", [choose_all, lambda _: None], ids=["kernels", "no kernels"])
@pytest.mark.parametrize("mode", ["kernels", "kernels+packed"])
def test_a_model_with_epilogues_computes_the_same(mode: Any, choose: Choose, tmp_path: Path) -> None:
    stitched = stitch_in_process(NET, tmp_path, mode, choose, moves=EVERY)
    if choose is not choose_all:
        assert stitched.places == PLACES
    original, model = twins(stitched)
    for seed in range(2):
        inputs, _ = stitched.inputs(seed)
        with torch.inference_mode():
            close(model(*inputs), original, inputs)
        with torch.no_grad():
            close(torch.compile(model, backend="eager", fullgraph=True)(*inputs), original, inputs)
            original.project.weight.data[0, 0] += 0.5
            model.project.weight.data[0, 0] += 0.5


def test_without_the_layout_nothing_is_fused(tmp_path: Path) -> None:
    stitched = stitch_in_process(NET, tmp_path, "kernels", lambda _: None, moves=[MoveKind.FUSE_EPILOGUES])
    assert stitched.places == {}


UNUSUAL = st.sampled_from([float("nan"), float("inf"), float("-inf"), -0.0, 1e30, -1e30, -100.0, 88.0])


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(
    epilogue=st.sampled_from([*EPILOGUES, "gelu", "gelu/tanh"]),
    values=st.lists(st.one_of(st.floats(-9, 9, width=32), UNUSUAL), min_size=1, max_size=8),
    channels=st.integers(1, 9),
    kernel=st.sampled_from([1, 3]),
    biased=st.booleans(),
)
def test_an_epilogue_computes_what_torch_computes(
    epilogue: str, values: list[float], channels: int, kernel: int, biased: bool
) -> None:
    """Also of values that are no numbers or not finite: each result is one input times a weight."""
    # torch itself gives NaN for GELU of infinity in the default layout, and infinity in channels-last.
    assume(epilogue != "gelu" or float("inf") not in values)
    counted: Counter[str] = Counter()
    products = Products(SimpleNamespace(count=lambda name: counted.update([name])))  # type: ignore[arg-type]
    torch.manual_seed(channels)
    name, _, way = epilogue.partition("/")
    algorithm = way or ("none" if name == "gelu" else "")
    filled = torch.tensor((values * 16)[:16]).view(1, 1, 4, 4)
    x = filled.expand(2, channels, 4, 4).contiguous(memory_format=torch.channels_last)
    weight = torch.zeros(5, 1, kernel, kernel) if channels == 5 else torch.zeros(3, channels, kernel, kernel)
    weight[:, 0, kernel // 2, kernel // 2] = 0.5 + torch.rand(len(weight))
    groups = 5 if channels == 5 else 1
    if groups == 1 and channels > 1:
        x = torch.cat((x[:, :1], torch.zeros_like(x[:, 1:])), 1).contiguous(memory_format=torch.channels_last)
    bias = torch.randn(len(weight)) if biased else None
    places = [1, 1], [kernel // 2] * 2, [1, 1], groups
    other = torch.randn(2, len(weight), 4, 4) if name in ("add", "mul") else None
    with torch.inference_mode():
        plain = convolution(x, weight, bias, *places)
        if kernel == 3 and not torch.isfinite(filled).all():
            plain = products.convolution(x, weight, bias, *places)  # zero times infinity: as oneDNN has it
        want = followed(plain, name, algorithm, other)
        counted.clear()
        found = products.convolution(x, weight, bias, *places, name, algorithm, other)
        by_torch = convolution(x, weight, bias, *places, name, algorithm, other)
    assert counted == {PACKED: 1}
    torch.testing.assert_close(found, want, rtol=1e-5, atol=1e-5, equal_nan=True)
    if kernel == 1 or torch.isfinite(filled).all():
        torch.testing.assert_close(by_torch, want, rtol=1e-5, atol=1e-5, equal_nan=True)


@pytest.mark.slow
@pytest.mark.usefixtures("no_slow_parts")
def test_the_move_is_proposed_judged_and_kept_if_it_pays(tmp_path: Path) -> None:
    """Speeds are given: epilogues pay. Answers and counts are the real referee's."""
    kept, text = judged_moves(NET, tmp_path / "mobile", {"derive(": 0.3, "'swish'": 0.2})
    assert kept["fuse_epilogues"] and kept["channels_last"]
    assert "- fuse_epilogues: kept, in 7 places" in text
