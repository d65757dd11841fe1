"""The function that reads weights and inputs of a call that is known."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
import torch

from agentforge.stitch.graph.rewrite import _signature
from agentforge.stitch.graph.structure import described
from agentforge.stitch.runtime.guards import guards, reader
from agentforge.stitch.runtime.signature import Signature


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


X, Y = torch.zeros(2, 3), torch.ones(4)


@pytest.mark.parametrize(
    ("captured", "others"),
    [
        (((X, 0.5), {}), [((X, 0.6), {}), ((X, 1), {}), ((X, None), {}), ((X,), {})]),
        (((X, None), {"flag": True}), [((X, Y), {"flag": True}), ((X, None), {"flag": 1}), ((X, None), {})]),
        (((), {"x": X, "y": Y}), [((X,), {"y": Y}), ((), {"x": X, "z": Y}), ((), {"x": Y, "y": X})]),
        (
            (({"x": X, "more": [Y, ("a", 2)]},), {}),
            [
                (({"more": [Y, ("a", 2)], "x": X},), {}),
                (({"x": X, "more": [Y, ("a", 3)]},), {}),
                (({"x": X, "more": [Y, ["a", 2]]},), {}),
                (({"x": X, "more": [Y, ("a", 2), X]},), {}),
                (({"x": X},), {}),
                (({"x": X, "more": None},), {}),
                (({"x": X, "more": [X, ("a", 2)]},), {}),
                ((X,), {}),
            ],
        ),
    ],
    ids=["a number", "None and a flag", "keywords", "containers"],
)
def test_calls_with_constants_and_containers_are_known(captured: Any, others: Sequence[Any]) -> None:
    module = torch.nn.Linear(3, 3).eval()
    parts = described(module)["parts"]
    read = reader([], [], [False], [], [(0, "_parameters", "weight")], [parts])
    signature = Signature(_signature(captured))
    known, learn = guards(signature, read, None, [])
    args, kwargs = captured
    with torch.no_grad():
        assert known(module, args, kwargs) is None
        inputs = signature.match(args, kwargs)
        assert inputs is not None
        learn([module.weight, *inputs])
        found = known(module, args, kwargs)
        assert found is not None
        assert [id(t) for t in found] == [id(module.weight), *map(id, inputs)]
        for other in others:
            assert known(module, *other) is None
            assert signature.match(*other) is None


def test_a_key_that_json_cannot_keep_makes_a_call_that_is_never_known() -> None:
    call = (({("a", "b"): [X]},), {})
    signature = Signature(json.loads(json.dumps(_signature(call))))
    read = reader([], [], [False], [], [], [described(torch.nn.Identity())["parts"]])
    known, learn = guards(signature, read, None, [])
    with torch.no_grad():
        learn([X])
        assert known(torch.nn.Identity().eval(), *call) is None


def test_a_nested_tensor_is_another_call() -> None:
    """An encoder's layer gets one if the mask of padding is aligned."""
    nested = torch.nested.nested_tensor([torch.ones(3, 4), torch.ones(2, 4)])
    signature = Signature(_signature(((torch.ones(2, 3, 4),), {})))
    read = reader([], [], [False], [], [], [described(torch.nn.Identity())["parts"]])
    known, learn = guards(signature, read, None, [])
    with torch.no_grad():
        learn([torch.ones(2, 3, 4)])
        assert known(torch.nn.Identity().eval(), (torch.ones(2, 3, 4),), {}) is not None
        assert known(torch.nn.Identity().eval(), (nested,), {}) is None
        assert signature.match((nested,), {}) is None
