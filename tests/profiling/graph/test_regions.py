from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from agentforge.profiling.cost import cost_of
from agentforge.profiling.graph.operators import Kind, kind_of
from agentforge.profiling.graph.region import Region
from agentforge.profiling.graph.regions import partition
from agentforge.profiling.graph.value_capture import record
from tests.profiling.captured import capture_units

from ..models import MODELS, LlamaBlock, make
from ..test_cost import DEVICE, ROOFLINE


def regions_of(model: nn.Module, *args: torch.Tensor) -> tuple[Region, ...]:
    (unit,) = capture_units(model.eval(), args, {}).units
    return partition(unit.graph_module.graph)


def operators(region: Region) -> list[str]:
    return [str(n.target).split(".")[1] for n in region.nodes if kind_of(n) is not Kind.VIEW]


class Function(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *args):
        return self.function(*args)


@pytest.mark.parametrize("name", MODELS)
def test_regions_are_disjoint_complete_and_ordered(name):
    model, args, kwargs = make(name)
    (unit,) = capture_units(model, args, kwargs).units
    graph = unit.graph_module.graph
    regions = partition(graph)
    members = [n for r in regions for n in r.nodes]
    assert len(members) == len(set(members))
    working = {n for n in graph.nodes if n.op == "call_function" and kind_of(n) is not Kind.VIEW}
    assert working <= set(members)


@pytest.mark.parametrize("name", MODELS)
def test_contracting_the_regions_leaves_no_cycle(name):
    model, args, kwargs = make(name)
    (unit,) = capture_units(model, args, kwargs).units
    assert_acyclic(unit.graph_module.graph)


def assert_acyclic(graph):
    owner = {n: n for n in graph.nodes}
    for region in partition(graph):
        owner.update(dict.fromkeys(region.nodes, region))
    edges = {}
    for node in graph.nodes:
        for user in node.users:
            if owner[node] is not owner[user]:
                edges.setdefault(owner[node], set()).add(owner[user])
    done, active = set(), set()

    def visit(vertex):
        assert vertex not in active
        if vertex in done:
            return
        active.add(vertex)
        for following in edges.get(vertex, ()):
            visit(following)
        active.discard(vertex)
        done.add(vertex)

    for vertex in list(edges):
        visit(vertex)


@pytest.mark.slow
@settings(max_examples=12, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=14))
def test_random_graphs_are_cut_without_a_cycle(program):
    def run(x):
        values = [x]
        for operation, i, j in program:
            a, b = values[i % len(values)], values[j % len(values)]
            values.append(
                [
                    lambda a=a, b=b: a + b,
                    lambda a=a, b=b: a * torch.sigmoid(b),
                    lambda a=a: torch.softmax(a, -1),
                    lambda a=a: a @ a.transpose(-2, -1),
                    lambda a=a: a - a.mean(-1, keepdim=True),
                    lambda a=a: torch.softmax(a.transpose(-2, -1), -1),
                ][operation]()
            )
        return values[-1]

    graph = torch.fx.GraphModule
    (unit,) = capture_units(Function(run).eval(), (torch.randn(3, 4, 4),), {}).units
    graph = unit.graph_module.graph
    assert_acyclic(graph)
    for region in partition(graph):
        rows = {(kind_of(n) is Kind.REDUCTION) for n in region.nodes}
        assert rows  # every region holds nodes
        assert len([n for n in region.nodes if kind_of(n) is Kind.GEMM]) in (0, 1)
        if any(kind_of(n) is Kind.GEMM for n in region.nodes):
            assert region.vendor


def test_llama_block_falls_into_the_regions_that_a_person_would_draw():
    types = [r.op_type for r in regions_of(LlamaBlock(), torch.randn(2, 16, 32))]
    assert types.count("norm") == 2
    assert types.count("rope") == 2
    assert types.count("gated_activation") == 1
    assert types.count("attention") == 1
    assert types.count("gemm") == 7


def test_norm_takes_the_residual_along():
    found = regions_of(LlamaBlock(), torch.randn(2, 16, 32))
    second = [r for r in found if r.op_type == "norm"][1]
    assert "add" in operators(second)
    assert len(second.outputs) == 2  # the sum goes on as the next residual


@pytest.mark.parametrize(
    ("function", "shapes", "op_type"),
    [
        (lambda x, r: F.gelu(x + 1) + r, [(8, 8), (8, 8)], "pointwise"),
        (lambda x: F.layer_norm(x + 1, (8,)), [(8, 8)], "norm"),
        (lambda x: F.group_norm(x, 2), [(2, 4, 6)], "norm"),
        (
            lambda x: (x - x.mean(-1, keepdim=True)) / (x.var(-1, keepdim=True) + 1e-5).sqrt(),
            [(8, 8)],
            "norm",
        ),
        (lambda x: torch.softmax(x * 2, -1), [(8, 8)], "softmax"),
        (lambda x: x.exp() / x.exp().sum(-1, keepdim=True), [(8, 8)], "softmax"),
        (lambda x: x.abs().sum(-1), [(8, 8)], "reduction"),
        (lambda x, y: F.mse_loss(x, y), [(8, 8), (8, 8)], "reduction"),
        (lambda x: F.max_pool2d(x, 2), [(1, 2, 8, 8)], "pooling"),
        (lambda x, y: F.silu(x) * y, [(8, 8), (8, 8)], "gated_activation"),
        (lambda x: (lambda a: F.gelu(a[0]) * a[1])(x.chunk(2, -1)), [(8, 8)], "gated_activation"),
        (lambda x: x * torch.sigmoid(x), [(8, 8)], "pointwise"),
        (lambda x: torch.sort(x)[0], [(8, 8)], "other"),
        (lambda x: x @ x, [(8, 8)], "gemm"),
    ],
)
def test_operator_classes(function, shapes, op_type):
    found = regions_of(Function(function), *(torch.randn(s) for s in shapes))
    assert [r.op_type for r in found] == [op_type]


def test_cross_entropy_with_its_mean_is_one_region():
    def loss(x, y):
        return -torch.log_softmax(x, -1).gather(1, y[:, None]).mean()

    found = regions_of(
        Function(lambda x, y: F.nll_loss(torch.log_softmax(x, 1), y)), torch.randn(8, 5), torch.arange(8) % 5
    )
    assert [r.op_type for r in found] == ["cross_entropy"]
    found = regions_of(Function(loss), torch.randn(8, 5), torch.arange(8) % 5)
    assert [r.op_type for r in found] == ["cross_entropy"]


def test_two_row_structures_are_two_regions():
    found = regions_of(Function(lambda x: torch.softmax(torch.softmax(x, -1), 0)), torch.randn(8, 8))
    assert len(found) == 2


def test_random_operators_stay_alone():
    found = regions_of(
        Function(lambda x: torch.relu(F.dropout(torch.relu(x), training=True))), torch.randn(8, 8)
    )
    alone = [r for r in found if "dropout" in operators(r)]
    assert len(alone) == 1
    assert len(operators(alone[0])) == 1


def test_the_epilogue_of_a_gemm_is_its_own_region():
    found = regions_of(nn.Sequential(nn.Linear(8, 8), nn.GELU()), torch.randn(4, 8))
    assert [r.op_type for r in found] == ["gemm", "pointwise"]
    assert [r.vendor for r in found] == [True, False]


@pytest.mark.parametrize(
    "function",
    [
        lambda x: F.normalize(x, dim=-1),
        lambda x: torch.relu(x.max(dim=-1)[0]) * 2,
        lambda x: (x * 2).view(-1).add(1).view(8, 8).relu(),
    ],
)
def test_views_between_operators_do_not_part_them(function):
    (region,) = regions_of(Function(function), torch.randn(8, 8))
    assert len(region.outputs) == 1


OTHER = torch.library.Library("agentforge_tests", "FRAGMENT")
for schema in (
    "silu(Tensor x) -> Tensor",
    "rms_norm(Tensor x, Tensor weight, float eps) -> Tensor",
    "group_norm(Tensor x, int groups) -> Tensor",
    "view(Tensor x, int[] shape) -> Tensor",
    "lstm(Tensor x) -> Tensor",
    "embedding(Tensor x) -> Tensor",
):
    OTHER.define(schema)
    OTHER.impl(schema.partition("(")[0], lambda x, *_: x.clone(), "CompositeExplicitAutograd")


@pytest.mark.parametrize(
    "call",
    [
        lambda ops, x: ops.silu(x),
        lambda ops, x: ops.rms_norm(x, x, 1e-6),
        lambda ops, x: ops.group_norm(x, 4),
        lambda ops, x: ops.view(x, [8, 8]),
        lambda ops, x: ops.lstm(x),
        lambda ops, x: ops.embedding(x),
    ],
)
def test_an_operator_of_another_library_is_not_taken_for_torchs(call):
    model = Function(lambda x: torch.relu(call(torch.ops.agentforge_tests, x + 1) * 2))
    (unit,) = capture_units(model.eval(), (torch.randn(8, 8),), {}).units
    before, other, after = partition(unit.graph_module.graph)
    assert (operators(before), operators(after)) == (["add"], ["mul", "relu"])
    assert other.op_type == "other"
    assert kind_of(other.nodes[0]) is Kind.OPAQUE
    found = cost_of(other, record(unit, {*other.inputs, *other.outputs}), DEVICE, ROOFLINE)
    assert found.flops == 0


@pytest.mark.parametrize("norm", [nn.GroupNorm(2, 4), nn.LayerNorm(8), nn.Softmax(-1)])
def test_an_empty_batch_is_captured(norm):
    (region,) = regions_of(norm, torch.randn(0, 4, 8))
    assert region.op_type == "other"


def test_the_bits_of_an_input_are_read_outside_of_a_region():
    def function(x):
        return (x.view(torch.int32) & 0x7FFFFFFF) + 1

    (region,) = regions_of(Function(function), torch.randn(8, 16))
    assert "aten.view.dtype" not in [str(n.target) for n in region.nodes]


def test_only_euclidean_distances_are_the_librarys():
    x, y = torch.randn(40, 8), torch.randn(30, 8)
    (products,) = regions_of(Function(torch.cdist), x, y)
    assert products.vendor
    (others,) = regions_of(Function(lambda a, b: torch.exp(-torch.cdist(a, b, 1.0))), x, y)
    assert operators(others) == ["cdist", "neg", "exp"]
    assert not others.vendor


@pytest.mark.parametrize(
    "write",
    [
        lambda z, x: torch.mul(x, 3, out=z),
        lambda z, x: torch._foreach_add_([x.clone(), z], 1.0),
    ],
    ids=["named out", "in a list"],
)
def test_what_is_written_by_another_argument_keeps_its_place(write):
    def function(x):
        z = x * 2
        read = torch.relu(z)
        write(z, x)
        return read + z

    found = [operators(r) for r in regions_of(Function(function), torch.randn(4, 8))]
    assert ["relu"] in found
    assert ["add"] in found
