"""Stitched models whose kernels are written for a GPU, on one."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
import torch

from agentforge.stitch.files import Mode
from agentforge.stitch.runtime.branches import STREAMS
from agentforge.stitch.runtime.graph import REPLAY

from .making import TOWERS, moved, same, stitch_in_process
from .test_gpu_artifact import stitched

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an NVIDIA GPU"),
]


needs_cupy = pytest.mark.skipif(importlib.util.find_spec("cupy") is None, reason="needs CuPy")


@pytest.mark.parametrize("mode", ["kernels", "kernels+graph", "kernels+compile"])
@pytest.mark.parametrize("language", ["cuda", "triton", pytest.param("cupy", marks=needs_cupy)])
def test_outputs_agree_and_every_kernel_runs(language: str, mode: Mode, tmp_path: Path) -> None:
    made = stitched(language, tmp_path / "stitched", mode, "cuda")
    original = made.model().cuda()
    optimized = made.package.optimize(made.model().cuda())
    import agentforge_cpp  # the artifact's copy

    before, kept = agentforge_cpp.calls().get(REPLAY, 0), []
    for seed in range(4):
        args, kwargs = moved(made.inputs(seed), "cuda")
        with torch.inference_mode():
            kept.append((optimized(*args, **kwargs), original(*args, **kwargs)))
    assert all(same(got, expected, 1e-4) for got, expected in kept)
    assert any(n == 8 for n in made.package.calls().values())  # two norms, four forwards
    assert agentforge_cpp.calls().get(REPLAY, 0) - before == (3 if mode == "kernels+graph" else 0)


@pytest.mark.parametrize("mode", ["kernels+streams", "kernels+graph+streams"])
def test_branches_on_several_streams_agree_also_from_another_stream(mode: Mode, tmp_path: Path) -> None:
    made = stitch_in_process(TOWERS, tmp_path / "stitched", mode, lambda _: None, "cuda")
    original = made.model().cuda()
    optimized = made.package.optimize(made.model().cuda())
    import agentforge_cpp  # the artifact's copy

    before, kept = agentforge_cpp.calls().get(STREAMS, 0), []
    other = torch.cuda.Stream()
    for seed in range(20):
        args, kwargs = moved(made.inputs(seed), "cuda")
        other.wait_stream(torch.cuda.current_stream())
        with torch.inference_mode():
            expected = original(*args, **kwargs)
            if seed % 2:
                kept.append((optimized(*args, **kwargs), expected))
            else:
                with torch.cuda.stream(other):
                    results = optimized(*args, **kwargs)
                torch.cuda.current_stream().wait_stream(other)
                kept.append((results, expected))
                del results
        assert torch.cuda.current_stream() == torch.cuda.default_stream()
        torch.cuda.current_stream().wait_stream(other)
    assert all(same(got, expected, 1e-4) for got, expected in kept)
    assert agentforge_cpp.calls().get(STREAMS, 0) - before == 20


def test_a_forward_on_several_streams_is_captured_in_the_callers_graph(tmp_path: Path) -> None:
    made = stitch_in_process(TOWERS, tmp_path / "stitched", "kernels+streams", lambda _: None, "cuda")
    original = made.model().cuda()
    optimized = made.package.optimize(made.model().cuda())
    args, _ = moved(made.inputs(0), "cuda")
    graph, side = torch.cuda.CUDAGraph(), torch.cuda.Stream()
    with torch.no_grad():
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            optimized(*args)
        torch.cuda.current_stream().wait_stream(side)
        with torch.cuda.graph(graph):
            results = optimized(*args)
        for seed in range(1, 4):
            fresh, _ = moved(made.inputs(seed), "cuda")
            for place, value in zip(args, fresh, strict=True):
                place.copy_(value)
            graph.replay()
            assert same(results, original(*fresh), 1e-4)


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
