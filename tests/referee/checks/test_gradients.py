"""Backward passes that usual training does not have: each catches wrong gradients and accepts right ones."""

from __future__ import annotations

import pytest

from agentforge.referee.checks.correctness.gradients import Gradients
from agentforge.referee.workers.failures import WorkerFailure
from agentforge.schema import EvaluationStatus

from ..judging import examined, problem

GATE = problem(
    "return torch.sigmoid(x * self.weight) * x",
    "torch.randn(16, 32)",
    "self.weight = torch.nn.Parameter(torch.randn(32))",
    differentiable=True,
)
TABLE = problem(
    "return self.table[x]",
    "torch.randperm(64)[:24]",
    "self.table = torch.nn.Parameter(torch.randn(64, 8))",
    differentiable=True,
)
BY_HAND = """
class Gate(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w):
        s = torch.sigmoid(x * w)
        ctx.save_for_backward(x)
        ctx.slope, ctx.into_w = s + x * w * s * (1 - s), x * x * s * (1 - s)
        return s * x

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * ctx.slope, (g * ctx.into_w).sum(0)


class Lookup(torch.autograd.Function):
    @staticmethod
    def forward(ctx, table, places):
        ctx.save_for_backward(places)
        ctx.shape = table.shape
        return table[places]

    @staticmethod
    def backward(ctx, g):
        (places,) = ctx.saved_tensors
        return g.new_zeros(ctx.shape).index_add_(0, places, g), None


class Model"""
OWN = (("class Model", BY_HAND), ("torch.sigmoid(x * self.weight) * x\n", "Gate.apply(x, self.weight)\n"))
OWN_LOOKUP = (("class Model", BY_HAND), ("self.table[x]", "Lookup.apply(self.table, x)"))
FLAT = "g.as_strided(g.shape, (g.shape[1], 1))"


@pytest.mark.slow
def test_every_way_is_compared(referee):
    for changes in ((), OWN):
        with examined(referee, GATE, *changes) as context:
            told = Gradients().run(context)
        assert "from an expanded gradient: the gradient of input 0, the gradient of weight" in told
        assert "from a transposed gradient: the gradient of input 0" in told
        assert "the second through one answer: the gradient of input 0" in told
        assert told.endswith("with frozen parameters: the gradient of input 0")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("new", "found"),
    [
        ("(g if g.stride(0) == 0 else FLAT) * ctx.slope", "from a transposed gradient"),
        ("(g if g.stride(0) else g[0, 0]) * ctx.slope", "from an expanded gradient"),
        ("ctx.slope.mul_(g)", "that is the second through one answer"),
        ("g * (ctx.slope if ctx.needs_input_grad[1] else 1)", "with frozen parameters"),
    ],
    ids=["transposed", "expanded", "twice", "frozen"],
)
def test_a_way_for_which_gradients_are_wrong(referee, new, found):
    wrong = (*OWN, ("return g * ctx.slope", f"return {new}".replace("FLAT", FLAT)))
    with examined(referee, GATE, *wrong) as context, pytest.raises(WorkerFailure) as info:
        Gradients().run(context)
    assert info.value.status is EvaluationStatus.INCORRECT_NUMERICAL
    assert info.value.reason.startswith(f"in the backward pass {found} the gradient of input 0")


def test_an_answer_without_a_graph_while_parameters_are_frozen(referee):
    cut = (*OWN, ("Gate.apply(x,", "Gate.apply(x if self.weight.requires_grad else x.detach(),"))
    told = "with frozen parameters: its outputs have no gradient"
    with examined(referee, GATE, *cut) as context, pytest.raises(WorkerFailure, match=told):
        Gradients().run(context)


def test_an_unusual_way_may_be_refused(referee):
    strict = (*OWN, ("return g *", "assert g.is_contiguous()\n        return g *"))
    with examined(referee, GATE, *strict) as context:
        told = Gradients().run(context)
    assert "from an expanded gradient: refused" in told
    assert "from a transposed gradient: refused" in told


@pytest.mark.slow
def test_places_that_no_draw_repeats(referee):
    for changes in ((), OWN_LOOKUP):
        with examined(referee, TABLE, *changes) as context:
            assert "with repeated values of input 0: the gradient of table" in Gradients().run(context)
    assigned = (*OWN_LOOKUP, ("index_add_", "index_copy_"))
    with (
        examined(referee, TABLE, *assigned) as context,
        pytest.raises(WorkerFailure, match="repeated values"),
    ):
        Gradients().run(context)
