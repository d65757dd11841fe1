"""Backward passes of every way."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from agentforge.referee.workers.failures import UnusableOutput
from agentforge.referee.workers.pytree import Leaf
from agentforge.referee.workers.runner import Way, gradients

SEEN: list[torch.Tensor] = []


class Scaled(torch.autograd.Function):
    """Keeps the gradients that arrive."""

    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        return x * weight

    @staticmethod
    def backward(ctx, grad):
        SEEN.append(grad)
        x, weight = ctx.saved_tensors
        return grad * weight, (grad * x).sum_to_size(weight.shape)


class Model(torch.nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(width))

    def forward(self, x):
        return Scaled.apply(x, self.weight)


def passed(model: torch.nn.Module, x: torch.Tensor, way: Way) -> dict[str, torch.Tensor]:
    SEEN.clear()
    leaves, written = gradients(model, (x,), {}, 1, way)
    assert written == []
    return {leaf.path: leaf.value for leaf in leaves if isinstance(leaf, Leaf)}


@given(st.lists(st.integers(1, 5), min_size=1, max_size=3))
def test_each_way_gives_the_right_gradients(shape):
    model, x = Model(shape[-1]), torch.randn(shape)
    dense = passed(model, x, Way())
    assert set(dense) == {"the gradient of input 0", "the gradient of weight"}
    for way in (Way(arrives="transposed"), Way(twice=True)):
        for path, value in passed(model, x, way).items():
            torch.testing.assert_close(value, dense[path])
    assert len(SEEN) == 2
    frozen = passed(model, x, Way(frozen=True))
    torch.testing.assert_close(frozen, {"the gradient of input 0": dense["the gradient of input 0"]})
    assert model.weight.requires_grad
    expanded = passed(model, x, Way(arrives="expanded"))
    (arrived,) = SEEN
    torch.testing.assert_close(expanded["the gradient of input 0"], arrived * model.weight)


def test_how_gradients_lie_when_they_arrive():
    strides = {}
    for how in ("dense", "expanded", "transposed"):
        passed(Model(5), torch.randn(2, 3, 5), Way(arrives=how))
        strides[how] = SEEN[0].stride()
    assert strides == {"dense": (15, 5, 1), "expanded": (0, 0, 1), "transposed": (1, 2, 6)}
    for how, stride in (("expanded", (0,)), ("transposed", (2,))):
        passed(Model(5), torch.randn(5), Way(arrives=how))
        assert SEEN[0].stride() == stride


def test_frozen_parameters_learn_again_whatever_happens():
    model = Model(3)
    with pytest.raises(UnusableOutput):
        gradients(model, (torch.ones(3, dtype=torch.int64),), {}, 1, Way(frozen=True))
    assert model.weight.requires_grad
