"""The precision of float32 products that a model's file sets."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

from agentforge.problems.kernelbench import load_problem
from agentforge.profiling import profile_target
from agentforge.profiling.cost import cost_of
from agentforge.profiling.float32 import precision_line, precision_notes, product_dtype
from agentforge.profiling.graph.extract import extract
from agentforge.profiling.graph.regions import partition
from agentforge.profiling.graph.value_capture import record
from tests.profiling.captured import capture_units
from tests.profiling.test_cost import DEVICE, PEAKS
from tests.profiling.test_profile import ROOFLINE, target

STATEMENT = 'torch.set_float32_matmul_precision("high")'


def _newer(value: str) -> None:
    torch.backends.cuda.matmul.fp32_precision = value


def _older(value: bool) -> None:
    torch.backends.cuda.matmul.allow_tf32 = value


@pytest.fixture(autouse=True)
def _exact() -> Iterator[None]:
    yield
    if hasattr(torch.backends.cuda.matmul, "fp32_precision"):
        _newer("ieee")
    torch.set_float32_matmul_precision("highest")
    torch.set_default_dtype(torch.float32)


def _set(change: Callable[[Any], None], value: object) -> None:
    try:
        change(value)
    except AttributeError:
        pytest.skip("this torch has no such setting")


@pytest.mark.parametrize(
    ("change", "value", "on_gpu", "on_cpu"),
    [
        (torch.set_float32_matmul_precision, "highest", "float32", "float32"),
        (torch.set_float32_matmul_precision, "high", "tf32", "tf32"),
        (torch.set_float32_matmul_precision, "medium", "tf32", "bfloat16"),
        (_older, True, "tf32", "tf32"),
        (_newer, "tf32", "tf32", "tf32"),
    ],
)
def test_each_way_to_set_it_is_seen(
    change: Callable[[Any], None], value: object, on_gpu: str, on_cpu: str
) -> None:
    _set(change, value)
    assert (product_dtype("cuda"), product_dtype("cpu")) == (on_gpu, on_cpu)
    assert bool(precision_line()) == bool(precision_notes()) == (value != "highest")


def test_a_region_has_the_ceiling_and_the_setting_of_its_model() -> None:
    model = torch.nn.Linear(64, 32).eval()
    (unit,) = capture_units(model, (torch.randn(256, 64),), {}).units
    (region,) = partition(unit.graph_module.graph)
    seen = record(unit, {*region.inputs, *region.outputs})
    exact = extract(region, seen).definition.reference
    assert cost_of(region, seen, DEVICE, PEAKS).dtype == "float32"
    torch.set_float32_matmul_precision("high")
    found = cost_of(region, seen, DEVICE, PEAKS)
    assert (found.dtype, found.sol_s) == ("tf32", pytest.approx(found.flops / 4e11))
    lower = extract(region, seen).definition.reference
    assert lower == exact.replace("aten = torch.ops.aten\n", f"aten = torch.ops.aten\n{STATEMENT}\n")


@pytest.mark.slow
def test_a_profile_reads_the_setting_when_the_model_was_loaded() -> None:
    setting = "torch.backends.cuda.matmul.allow_tf32 = True"
    profile = profile_target(target("LlamaBlock", "[torch.randn(4, 16, 32)]", setting), DEVICE, ROOFLINE)
    assert all(f"\n{STATEMENT}\n" in b.definition.reference for b in profile.bottlenecks)
    assert any("float32 products to 'high'" in note for note in profile.notes)


class Weighs(torch.nn.Module):
    """Makes numbers of the default dtype from nothing."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + torch.ones(8) / (torch.arange(8) + torch.full((8,), 0.5, dtype=torch.float32))


def test_a_region_makes_numbers_of_the_default_dtype_of_its_model() -> None:
    x = torch.randn(8)
    torch.set_default_dtype(torch.float64)
    (unit,) = capture_units(Weighs().eval(), (x,), {}).units
    (region,) = partition(unit.graph_module.graph)
    definition = extract(region, record(unit, {*region.inputs, *region.outputs})).definition
    expected = unit.graph_module(x)
    torch.set_default_dtype(torch.float32)
    assert expected.dtype is torch.float64
    assert torch.equal(load_problem(definition).build(0)(x), expected)
