"""Tensors in several places, and in containers: what no longer is as it was captured runs the original."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from .making import Stitched, same, stitch_in_process
from .test_runtime import KEPT, both, engaged

SHARED = """
import torch
import torch.nn as nn

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Sequential(nn.Linear(8, 8), nn.LayerNorm(8))
        self.second = self.first

    def forward(self, x):
        return torch.tanh(self.second(torch.sigmoid(self.first(x)) * x))

def get_inputs():
    return [torch.randn(4, 8)]

def get_init_inputs():
    return []
"""

FILLED = """
import torch
import torch.nn as nn

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.rope, self.masks = nn.LayerNorm(8), None, {}

    def forward(self, x):
        if self.rope is None:
            self.rope = (torch.ones(8).cos(), torch.ones(8).sin())
        if len(x) not in self.masks:
            self.masks[len(x)] = torch.ones(len(x), 8).tril()
        return torch.tanh(self.norm(x) * self.rope[0] + self.rope[1]) * self.masks[len(x)]

def get_inputs():
    return [torch.randn(4, 8)]

def get_init_inputs():
    return []
"""


def runs_the_original_after(stitched: Stitched, change: Callable[[Any], None]) -> None:
    """Change a model, once after a call that took the short way and once before any call."""
    for calls in (2, 0):
        original = stitched.model()
        optimized = stitched.package.optimize(copy.deepcopy(original))
        args, kwargs = stitched.inputs(0)
        assert all(engaged(stitched, optimized, args, kwargs)[1] for _ in range(calls))
        for each in (original, optimized):
            torch.manual_seed(5)
            change(each)
        output, ran = engaged(stitched, optimized, args, kwargs)
        assert not ran
        with torch.no_grad():
            assert same(output, original(*args, **kwargs))


def test_a_weight_that_is_no_longer_tied_runs_the_original(block: Stitched) -> None:
    def replaced(model: Any) -> None:
        model.embed.weight = torch.nn.Parameter(torch.randn(50, 32))

    def assigned(model: Any) -> None:
        values = {**model.state_dict(), "embed.weight": torch.randn(50, 32)}
        model.load_state_dict(values, assign=True)

    runs_the_original_after(block, replaced)
    runs_the_original_after(block, assigned)
    untied = block.model()
    replaced(untied)
    with pytest.raises(
        ValueError, match=r"its head\.weight and embed\.weight are two tensors; they were one"
    ):
        block.package.optimize(untied)


def test_a_weight_that_is_tied_anew_runs_the_kernels(block: Stitched) -> None:
    original, optimized = both(block)
    args, kwargs = block.inputs(0)
    for model in (original, optimized):
        torch.manual_seed(5)
        model.embed.weight = model.head.weight = torch.nn.Parameter(torch.randn(50, 32))
    for _ in range(2):
        output, ran = engaged(block, optimized, args, kwargs)
        assert ran
        assert same(output, original(*args, **kwargs))


def test_a_module_under_two_names_that_becomes_two_runs_the_original(tmp_path: Path) -> None:
    def other() -> torch.nn.Module:
        return torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.LayerNorm(8)).eval()

    shared = stitch_in_process(SHARED, tmp_path)
    runs_the_original_after(shared, lambda model: setattr(model, "second", other()))
    model = shared.model()
    model.second = other()
    with pytest.raises(ValueError, match="are two tensors"):
        shared.package.optimize(model)


@pytest.mark.slow
def test_torch_compile_over_it_sees_that_a_weight_is_no_longer_tied(block: Stitched) -> None:
    original, optimized = both(block)
    args, kwargs = block.inputs(0)
    compiled = torch.compile(optimized, fullgraph=True, backend="aot_eager")
    assert engaged(block, compiled, args, kwargs)[1]
    for model in (original, optimized):
        torch.manual_seed(5)
        model.embed.weight = torch.nn.Parameter(torch.randn(50, 32))
    output, ran = engaged(block, compiled, args, kwargs)
    assert not ran
    with torch.no_grad():
        assert same(output, original(*args, **kwargs))
    torch._dynamo.reset()  # the original's code, which was compiled last, also fits models with tied weights


def test_a_container_of_another_length_runs_the_original(tmp_path: Path) -> None:
    source = KEPT.replace("self.scales[0]", "sum(self.scales)")
    source = source.replace('self.shifts["a"]', "sum(self.shifts.values())")
    stitched = stitch_in_process(source, tmp_path)
    runs_the_original_after(stitched, lambda model: model.scales.append(torch.ones(8)))
    runs_the_original_after(stitched, lambda model: model.shifts.update(b=torch.ones(8)))
    runs_the_original_after(stitched, lambda model: model.scales.pop())
    model = stitched.model()
    model.scales.append(torch.ones(8))
    with pytest.raises(ValueError, match="its scales has 2 items, not the captured 1"):
        stitched.package.optimize(model)


def test_what_the_first_call_keeps_is_missing_before_and_a_cache_may_grow(tmp_path: Path) -> None:
    stitched = stitch_in_process(FILLED, tmp_path)
    original, optimized = both(stitched)
    args, kwargs = stitched.inputs(0)
    first, later = (engaged(stitched, optimized, args, kwargs) for _ in range(2))
    assert (first[1], later[1]) == (False, True)
    assert same(first[0], original(*args, **kwargs))
    assert same(later[0], original(*args, **kwargs))
    assert not engaged(stitched, optimized, (torch.randn(2, 8),), {})[1]
    assert sorted(optimized.masks) == [2, 4]
    assert engaged(stitched, optimized, args, kwargs)[1]
    optimized.rope = None
    assert not engaged(stitched, optimized, args, kwargs)[1]
    assert engaged(stitched, optimized, args, kwargs)[1]


def test_a_tensor_that_becomes_a_number_runs_the_original(tmp_path: Path) -> None:
    source = KEPT.replace("self.scales[0]", "self.scale").replace(
        "self.norm =", "self.scale = torch.ones(1); self.norm ="
    )
    stitched = stitch_in_process(source, tmp_path)
    runs_the_original_after(stitched, lambda model: setattr(model, "scale", 2.0))


def test_a_part_that_becomes_none_runs_the_original(tmp_path: Path) -> None:
    source = SHARED.replace("self.second = self.first", "self.second = nn.LayerNorm(8)")
    source = source.replace("self.second(", "(self.second or torch.abs)(")
    stitched = stitch_in_process(source, tmp_path)
    runs_the_original_after(stitched, lambda model: setattr(model, "second", None))
