"""Stitched models whose kernels are written for a GPU, on one."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from agentforge.stitch.files import Mode
from agentforge.stitch.runtime.graph import REPLAY

from .making import moved, same
from .test_gpu_artifact import stitched

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an NVIDIA GPU")


@pytest.mark.parametrize("mode", ["kernels", "kernels+graph", "kernels+compile"])
@pytest.mark.parametrize("language", ["cuda", "triton"])
def test_outputs_agree_and_every_kernel_runs(language: str, mode: Mode, tmp_path: Path) -> None:
    made = stitched(language, tmp_path / "stitched", mode, "cuda")
    import agentforge_cpp

    original = made.model().cuda()
    optimized = made.package.optimize(made.model().cuda())
    before, kept = agentforge_cpp.calls().get(REPLAY, 0), []
    for seed in range(4):
        args, kwargs = moved(made.inputs(seed), "cuda")
        with torch.inference_mode():
            kept.append((optimized(*args, **kwargs), original(*args, **kwargs)))
    assert all(same(got, expected, 1e-4) for got, expected in kept)
    assert any(n == 8 for n in made.package.calls().values())  # two norms, four forwards
    assert agentforge_cpp.calls().get(REPLAY, 0) - before == (3 if mode == "kernels+graph" else 0)


def test_weights_in_a_cuda_graph_are_read_where_they_lie(tmp_path: Path) -> None:
    made = stitched("triton", tmp_path / "stitched", "kernels+graph", "cuda")
    original = made.model().cuda()
    optimized = made.package.optimize(made.model().cuda())
    args, kwargs = moved(made.inputs(0), "cuda")
    with torch.inference_mode(False), torch.no_grad():
        for _ in range(3):
            optimized(*args, **kwargs)
        for model in (original, optimized):
            model.down.weight.mul_(2)
            model.up.weight = torch.nn.Parameter(model.up.weight * 3)
        for _ in range(3):
            assert same(optimized(*args, **kwargs), original(*args, **kwargs), 1e-4)
