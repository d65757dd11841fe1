"""Problems in KernelBench's convention draw the same under the same seed, whatever generator they use."""

from __future__ import annotations

import pytest
import torch

from agentforge.problems.kernelbench import Problem, import_source, load_problem
from agentforge.schema import Definition, TargetError

DRAWN = """
import random

import numpy as np
import torch


class Model(torch.nn.Module):
    def __init__(self, scale, factor):
        super().__init__()
        self.fc = torch.nn.Linear(4, 4)
        self.scale, self.factor, self.offset = scale, factor, np.random.rand()

    def forward(self, x, y, z):
        return self.fc(x) * self.scale + y * z


def get_inputs():
    return [torch.randn(2, 4), torch.from_numpy(np.random.rand(4)), random.random()]


def get_init_inputs():
    return [torch.randn(4), random.random()]
"""


def problem(source: str = DRAWN) -> Problem:
    return load_problem(Definition(name="drawn", op_type="model", reference=source))


def test_inputs_are_those_of_their_seed() -> None:
    loaded = problem()
    first = loaded.inputs(3)[0]
    torch.testing.assert_close(first, loaded.inputs(3)[0], rtol=0, atol=0)
    for one, another in zip(first, loaded.inputs(4)[0], strict=True):
        assert torch.as_tensor(one != another).any()


def test_constructor_arguments_are_the_same_under_each_seed() -> None:
    loaded = problem()
    (scale, factor), model, again = loaded.constructor_arguments(), loaded.build(5), loaded.build(6)
    for built in (model, again):
        assert torch.equal(built.scale, scale)
        assert built.factor == factor
    assert model.offset == again.offset, "code may have it as a constant"
    assert not torch.equal(model.fc.weight, again.fc.weight)
    alone = problem(DRAWN.replace("[torch.randn(4), random.random()]", "[1.0, 1.0]")).build(5)
    assert torch.equal(alone.fc.weight, model.fc.weight), "arguments do not change the weights"


@pytest.mark.parametrize("names", ["(64, 4096)", "['a', '']", "['a', 'a']", "[['a']]"])
def test_names_of_workloads_are_different_strings(names: str) -> None:
    source = DRAWN.replace("get_inputs()", "get_inputs(workload)")
    assert problem(f"{source}\nworkloads = ['a', 'b']").workloads == ("a", "b")
    with pytest.raises(TargetError, match="write the names of workloads as strings"):
        _ = problem(f"{source}\nworkloads = {names}").workloads


def test_a_source_is_compiled_as_if_it_were_imported_from_its_file() -> None:
    module = import_source("def halved(x: float) -> float:\n    return x / 2\n", "halving")
    assert module.halved.__annotations__ == {"x": float, "return": float}
