"""The function that reads weights and inputs of a call that is known."""

from __future__ import annotations

import pytest
import torch

from agentforge.stitch.graph.structure import described
from agentforge.stitch.runtime.guards import reader


@pytest.mark.parametrize("number", [0, 1, 2])
def test_a_module_with_any_number_of_weights_is_read(number: int) -> None:
    module = torch.nn.Module()
    for n in range(number):
        module.register_parameter(f"w{n}", torch.nn.Parameter(torch.ones(1)))
    x = torch.zeros(2)
    weights = [(0, "_parameters", f"w{n}") for n in range(number)]
    parts = {"_modules": {}, "_parameters": {f"w{n}": True for n in range(number)}}
    read = reader([], [], [True], [], weights, [parts])
    found = read(module, (x,))
    assert found is not None
    assert [id(t) for t in found] == [*(id(p) for p in module.parameters()), id(x)]
    assert read(module.eval(), (x,)) is None


@pytest.mark.parametrize("change", ["a module", "a parameter", "a bias", "a buffer", "a part that was None"])
def test_what_was_added_or_was_none_is_noticed(change: str) -> None:
    module = torch.nn.Sequential(torch.nn.Linear(2, 2, bias=False))
    module[0].register_buffer("mask", None)
    module[0].register_module("adapter", None)
    parts = described(module)
    entries = [parts["parts"], *(entry["parts"] for entry in parts["modules"])]
    weights = [(1, "_parameters", "weight")]
    read = reader([(0, "0")], [torch.nn.Linear], [True, True], [0], weights, entries)
    assert read(module, ()) == (module[0].weight,)
    match change:
        case "a module":
            module.append(torch.nn.ReLU())
        case "a parameter":
            module.scale = torch.nn.Parameter(torch.ones(1))
        case "a bias":
            module[0].bias = torch.nn.Parameter(torch.ones(2))
        case "a buffer":
            module[0].mask = torch.ones(2)
        case _:
            module[0].adapter = torch.nn.ReLU()
    assert read(module, ()) is None
