"""The experts of a mixture, as transformers runs them: rows sorted by expert, and two grouped products."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from torch import nn
from torch.utils._pytree import tree_leaves

from agentforge.problems.kernelbench import load_problem
from agentforge.profiling.cost import cost_of
from agentforge.profiling.graph.operators import op_name
from agentforge.profiling.graph.regions import partition
from agentforge.profiling.graph.value_capture import flat_arguments, record
from tests.profiling.captured import capture_units

from ..test_cost import DEVICE, ROOFLINE
from .test_extract import Replacing, borders, problems

EXPERTS, WIDTH, INNER, TOKENS, CHOSEN = 4, 16, 32, 12, 2


class Mixture(nn.Module):
    def __init__(self, dtype: torch.dtype, biased: bool = False) -> None:
        super().__init__()
        self.router = nn.Linear(WIDTH, EXPERTS)
        self.up = nn.Parameter(torch.randn(EXPERTS, 2 * INNER, WIDTH) / 4)
        self.down = nn.Parameter(torch.randn(EXPERTS, WIDTH, INNER) / 4)
        self.bias = nn.Parameter(torch.randn(EXPERTS, 2 * INNER)) if biased else None
        self.to(dtype)

    def forward(self, x):
        weights, chosen = self.router(x).softmax(-1).topk(CHOSEN)
        ids, order = chosen.reshape(-1).sort()
        ends = torch.histc(ids.float(), EXPERTS, 0, EXPERTS - 1).cumsum(0, dtype=torch.int32)
        rows = product(x[order // CHOSEN], self.up.transpose(-2, -1), ends)
        if self.bias is not None:
            rows.add_(self.bias[ids])
        gate, up = rows.chunk(2, -1)
        rows = product(F.silu(gate) * up, self.down.transpose(-2, -1), ends)
        rows = rows * weights.reshape(-1)[order].unsqueeze(-1)
        return rows[order.argsort()].view(len(x), CHOSEN, -1).sum(1)


def product(rows, weights, ends):
    if rows.dtype is torch.bfloat16:
        return F.grouped_mm(rows, weights, offs=ends)
    return torch.ops.transformers.grouped_mm_fallback(rows, weights, offs=ends)


@pytest.fixture(params=[torch.float32, torch.bfloat16], ids=str)
def dtype(request: pytest.FixtureRequest) -> torch.dtype:
    if request.param is torch.float32:
        pytest.importorskip("transformers.integrations.moe")
    return request.param


@pytest.mark.parametrize("biased", [False, True])
def test_both_products_and_the_activation_are_one_target(dtype, biased):
    torch.manual_seed(0)
    x = torch.randn(TOKENS, WIDTH, dtype=dtype)
    (unit,) = capture_units(Mixture(dtype, biased).eval(), (x,), {}).units
    regions, definitions = problems(unit)
    (experts,) = [r for r in regions if r.op_type == "experts"]
    assert not experts.vendor
    assert sum("grouped_mm" in op_name(n) for n in experts.nodes) == 2
    assert {"up", "down"} <= {str(n.target) for n in experts.inputs if n.op == "get_attr"}
    models = {i: load_problem(d).build(0) for i, d in enumerate(definitions)}
    with torch.no_grad():
        (wanted,) = tree_leaves(unit.graph_module(x))
        (found,) = tree_leaves(
            Replacing(unit, regions, models).run(*flat_arguments(unit), enable_io_processing=False)
        )
    assert torch.equal(found, wanted)


def test_another_routing_is_drawn(dtype):
    x = torch.randn(TOKENS, WIDTH, dtype=dtype)
    (unit,) = capture_units(Mixture(dtype).eval(), (x,), {}).units
    regions, definitions = problems(unit)
    (definition,) = [d for r, d in zip(regions, definitions, strict=True) if r.op_type == "experts"]
    problem = load_problem(definition)
    for seed in range(4):
        args, _ = problem.inputs(seed)
        (ends,) = [a for a in args if a.dtype is torch.int32]
        assert ends[-1] == TOKENS * CHOSEN and (ends.diff() >= 0).all()
        assert problem.build(0)(*args).isfinite().all()


def test_only_the_experts_that_have_rows_are_read():
    pytest.importorskip("transformers.integrations.moe")
    model = Mixture(torch.float32).eval()
    with torch.no_grad():
        model.router.weight.zero_()
        model.router.bias.copy_(torch.tensor([0.0, 9.0, 0.0, 8.0]))
    (unit,) = capture_units(model, (torch.randn(TOKENS, WIDTH),), {}).units
    regions = partition(unit.graph_module.graph)
    (experts,) = [r for r in regions if r.op_type == "experts"]
    found = cost_of(experts, record(unit, borders(regions)), DEVICE, ROOFLINE)
    rows = TOKENS * CHOSEN
    assert found.flops == 2 * rows * WIDTH * 3 * INNER + 2 * rows * INNER
    assert found.bytes == 4 * (2 * WIDTH * 3 * INNER + 2 * rows * WIDTH + EXPERTS)
