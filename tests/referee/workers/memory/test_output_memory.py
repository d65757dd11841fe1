"""Outputs belong to the caller: they share no memory unless the reference's do, and may be written to."""

from __future__ import annotations

import pytest
import torch

from agentforge.referee.workers.failures import WorkerFailure
from agentforge.referee.workers.memory.output_memory import OutputMemory, Sharing
from agentforge.referee.workers.pytree import Leaf, locate, parse_located
from agentforge.schema import EvaluationStatus
from tests.referee.judging import examined, judge, problem

DIAGONAL = problem("return torch.diag_embed(x)", "torch.randn(16, 64)")
RECYCLED = """
import numpy, weakref
shape = (*x.shape, x.shape[-1])
free = self.__dict__.setdefault("free", {}).setdefault((shape, x.dtype), [])
memory = free.pop() if free else x.new_zeros(shape).numpy()
view = memory[:]  # every tensor on this memory holds it
out = torch.from_numpy(view)CLEARED
out.diagonal(dim1=-2, dim2=-1).copy_(x)
weakref.finalize(HELD, free.append, memory)
return out
""".strip().replace("\n", "\n        ")


def recycled(cleared: str, held: str) -> tuple[str, str]:
    """A change of `DIAGONAL`: memory is used again as soon as `held` is gone."""
    return "return torch.diag_embed(x)", RECYCLED.replace("CLEARED", cleared).replace("HELD", held)


REPEATED = problem("return x.unsqueeze(1).repeat(1, 4, 1)", "torch.randn(16, 64)")
IN_ONE = ("x.unsqueeze(1).repeat(1, 4, 1)", "x.clone().unsqueeze(1).expand(16, 4, 64)")
EXPANDED = problem("return x.mean(1, keepdim=True).expand(16, 64)", "torch.randn(16, 64)")
GATES = problem("return torch.sigmoid(x), torch.tanh(x)", "torch.randn(64, 64)")
COLUMNS = """
both = torch.empty(64, 128)
torch.sigmoid(x, out=both[:, :64]), torch.tanh(x, out=both[:, 64:])
return both[:, :64], both[:, 64:]
""".strip().replace("\n", "\n        ")
MASKED = problem("return torch.relu(x), torch.ones(64, 64).tril()", "torch.randn(64, 64)")
CONSTANT = ("torch.ones(64, 64).tril()", "self.__dict__.setdefault('mask', torch.ones(64, 64).tril())")
STATE = problem(
    "return x * self.weight, self.weight",
    "torch.randn(64, 64)",
    "self.weight = torch.nn.Parameter(torch.randn(64))",
)


@pytest.mark.parametrize(
    ("definition", "change", "reason"),
    [
        (DIAGONAL, recycled(cleared="", held="view"), "writes to earlier ones"),
        (DIAGONAL, recycled(cleared=".zero_()", held="out"), "an earlier output that is still in use"),
        (REPEATED, IN_ONE, "elements of out share memory"),
        (GATES, ("return torch.sigmoid(x), torch.tanh(x)", "return (torch.sigmoid(x),) * 2"), "out[1] share"),
        (MASKED, CONSTANT, "an earlier output that is still in use"),
    ],
    ids=["stale", "slices do not count", "expanded", "twice the same", "constant"],
)
def test_outputs_that_are_not_the_callers_own(referee, definition, change, reason):
    evaluation = judge(referee, definition, change)
    assert evaluation.status is EvaluationStatus.CHEATING
    assert any(reason in stage.detail for stage in evaluation.stages)


@pytest.mark.parametrize(
    ("definition", "changes"),
    [
        (DIAGONAL, [recycled(cleared=".zero_()", held="view")]),
        (EXPANDED, []),
        (EXPANDED, [("expand(16, 64)", "repeat(1, 64)")]),
        (GATES, [("return torch.sigmoid(x), torch.tanh(x)", COLUMNS)]),
        (MASKED, []),
        (STATE, []),
    ],
    ids=["rewritten", "as the reference", "less than the reference", "columns", "new mask", "own state"],
)
def test_outputs_that_are(referee, definition, changes):
    assert judge(referee, definition, *changes).status is EvaluationStatus.PASSED


def test_without_access_to_its_memory_places_are_compared_and_nothing_is_written(referee):
    with examined(referee, REPEATED, IN_ONE) as context:
        context.candidate.readable = False
        context.prepared.inputs.fill(0)
        with pytest.raises(WorkerFailure) as failure:
            context.candidate.call(0)
        assert failure.value.status is EvaluationStatus.CHEATING
    with examined(referee, DIAGONAL, ("torch.diag_embed(x)", "torch.diag_embed(x).add_(0)")) as context:
        context.candidate.readable = False
        context.prepared.inputs.fill(0)
        expected = context.baselines.expect(context.prepared, 0)
        for _ in range(3):
            context.candidate.call(0)
        context.comparator.check(context.candidate.fetch(0), expected, context.prepared.bounds, "here")


def sharing(*outputs: list[torch.Tensor]) -> set[tuple[int, int, int]]:
    memory = OutputMemory(Sharing())
    for tensors in outputs:
        leaves = [Leaf("out", tensor) for tensor in tensors]
        memory.living.append(parse_located({"leaves": locate(leaves)}))
    return set(memory.sharing().pairs)


def test_which_outputs_lie_in_some_ranges():
    tensors = [torch.zeros(4), torch.zeros(0), torch.zeros(4), torch.zeros(4)]
    memory = OutputMemory(Sharing())
    memory.living.append(parse_located({"leaves": locate([Leaf("out", x) for x in tensors])}))
    ranges = [(x.data_ptr() + 4, x.data_ptr() + 8) for x in tensors[2:]]
    assert memory.lies_in(ranges) == {2, 3}
    assert memory.lies_in([(0, 8)]) == memory.lies_in([]) == set()


def test_elements_that_share_memory():
    base = torch.zeros(100)
    assert sharing([base.expand(3, 100)]) == {(0, 0, 0)}
    assert sharing([base.unfold(0, 10, 1)]) == {(0, 0, 0)}
    assert sharing([base.view(10, 10).t(), torch.zeros(1).expand(1, 1)]) == set()
    assert sharing([base[:60], base[50:]]) == {(0, 0, 1)}
    assert sharing([base[::2], base[1::2], base[:0]]) == set()
    assert sharing([base[::2], base[3:4]], [base[::2]]) == {(1, 0, 0)}
    assert sharing([base[::2], base[3:4]], [base[1::2]]) == {(1, 0, 1)}


def test_an_overlap_that_takes_long_to_decide_counts_as_one():
    base = torch.zeros(1 << 20)
    strides = [2 * 3**n + 1 for n in range(10)]
    wild = torch.as_strided(base, [3] * 10, strides)
    assert (0, 0, 1) in sharing([wild, torch.as_strided(base[1:], [3] * 10, strides[::-1])])
