from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from torch import nn

from agentforge.profiling.measure.operators import only_in_graphs, program_notes
from tests.profiling.captured import capture_units

from ..models import MODELS, Cache, PartlyDynamic, make


class Branches(nn.Module):
    """Runs other code if it is exported."""

    def forward(self, x):
        return torch.sigmoid(x) * x if torch.compiler.is_exporting() else F.silu(x)


def other(model: nn.Module, *args, **kwargs) -> list[str]:
    return only_in_graphs(model, capture_units(model, args, kwargs).units, lambda: None)


def test_operators_that_only_an_export_has_are_named():
    found = other(nn.Sequential(Branches(), nn.Linear(8, 8)).eval(), torch.randn(4, 8))
    assert found == ["aten::mul", "aten::sigmoid"]
    (note,) = program_notes([*found, "aten::a", "aten::b", "aten::c"])
    assert "(mul, sigmoid, a, b, 1 more)" in note


@pytest.mark.parametrize("name", [name for name in MODELS if name != "bert"])
def test_graphs_of_other_models_are_the_same_program(name):
    model, args, kwargs = make(name)
    assert other(model, *args, **kwargs) == program_notes([]) == []


def test_a_fused_encoder_layer_is_another_program():
    model, args, kwargs = make("bert")
    assert "aten::addmm" in other(model, *args, **kwargs)


def test_parts_are_compared_too():
    assert other(PartlyDynamic().eval(), torch.randn(2, 16, 32)) == []


@pytest.mark.slow
def test_what_the_runs_write_is_undone():
    model = Cache().eval()
    units = capture_units(model, (torch.randn(1, 8),), {}).units
    undone = []

    def restore() -> None:
        undone.append(int(model.position))
        model.position.zero_()

    assert only_in_graphs(model, units, restore) == []
    assert undone == [1, 1]
