"""Products that a plan may merge with what reads them, or with each other."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from torch import nn

from agentforge.profiling.graph.extract import extract
from agentforge.profiling.graph.merges import merges
from agentforge.profiling.graph.operators import op_name
from agentforge.profiling.graph.regions import partition
from agentforge.profiling.graph.value_capture import record
from tests.profiling.captured import capture_units


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(32, 32) for _ in range(3))
        self.gate, self.up, self.down = nn.Linear(32, 64), nn.Linear(32, 64), nn.Linear(64, 32)
        self.norm = nn.LayerNorm(32)

    def forward(self, x):
        y = F.scaled_dot_product_attention(self.q(x), self.k(x), self.v(x))
        return self.norm(y + self.down(F.silu(self.gate(y)) * self.up(y)))


def found_in(model: nn.Module, *args: torch.Tensor):
    (unit,) = capture_units(model.eval(), args, {}).units
    graph = unit.graph_module.graph
    return unit, merges(partition(graph), {node: i for i, node in enumerate(graph.nodes)})


def test_siblings_gates_and_epilogues_are_found():
    _, found = found_in(Block(), torch.randn(2, 8, 32))
    names = sorted((r.op_type, " ".join(op_name(n) for n in r.nodes)) for r in found)
    assert names == [
        ("gemm", "linear linear linear"),
        ("gemm_epilogue", "linear add layer_norm"),
        ("gemm_epilogue", "linear silu linear mul"),
    ]
    assert not any(region.vendor for region in found)


def test_a_merge_computes_what_its_operators_computed():
    unit, found = found_in(Block(), torch.randn(2, 8, 32))
    seen = record(unit, {n for r in found for n in (*r.inputs, *r.outputs)})
    values = {}

    class Kept(torch.fx.Interpreter):
        def run_node(self, n):
            values[n] = super().run_node(n)
            return values[n]

    with torch.no_grad():
        Kept(unit.graph_module).run(*unit.args)
        for region in found:
            scope = {}
            exec(extract(region, seen).definition.reference, scope)
            made = scope["Model"]()(*(values[n] for n in region.inputs))
            made = made if isinstance(made, tuple) else (made,)
            assert all(torch.equal(a, values[n]) for a, n in zip(made, region.outputs, strict=True))


@pytest.mark.parametrize(
    "between",
    [
        lambda a: a.sort(-1)[0],  # another operator between the product and the norm
        lambda a: a + torch.randn_like(a),
    ],
)
def test_what_does_not_follow_a_product_directly_is_not_merged(between):
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.first = nn.Linear(32, 32)

        def forward(self, x):
            return F.layer_norm(between(self.first(x)), (32,))

    _, found = found_in(Model(), torch.randn(4, 32))
    assert found == ()


def test_a_merge_that_feeds_itself_through_others_is_refused():
    class Model(nn.Module):
        """Both products read x, and the second one's weight comes from the first one's result."""

        def __init__(self):
            super().__init__()
            self.first = nn.Linear(32, 32)

        def forward(self, x):
            weight = self.first(x).sort(-1)[0]
            return x @ weight

    _, found = found_in(Model(), torch.randn(32, 32))
    assert found == ()
