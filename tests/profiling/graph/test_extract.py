"""A region's definition computes what the region computes in the model, to the last bit."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.fx import Interpreter, Node
from torch.utils._pytree import tree_leaves

from agentforge.problems.kernelbench import load_problem
from agentforge.profiling.graph.capture import CapturedUnit
from agentforge.profiling.graph.extract import CannotExtract, extract, structure_key
from agentforge.profiling.graph.region import Region
from agentforge.profiling.graph.regions import partition
from agentforge.profiling.graph.value_capture import flat_arguments, record
from agentforge.schema import Definition
from tests.profiling.captured import capture_units

from ..models import MODELS, make


def borders(regions: tuple[Region, ...]) -> set[Node]:
    return {n for r in regions for n in (*r.inputs, *r.outputs)}


class Replacing(Interpreter):
    """Runs each region through its generated `Model` instead of its nodes."""

    def __init__(
        self, unit: CapturedUnit, regions: tuple[Region, ...], models: dict[int, torch.nn.Module]
    ) -> None:
        super().__init__(unit.graph_module, garbage_collect_values=False)
        self.by_output = {o: (r, models[i]) for i, r in enumerate(regions) for o in r.outputs}

    def run_node(self, n: Node) -> Any:
        if n not in self.by_output:
            return super().run_node(n)
        region, model = self.by_output[n]
        if any(s not in self.env for s in region.inputs):  # an input comes later in the graph's order
            return super().run_node(n)
        found = model(*(self.env[s] for s in region.inputs))
        tensors = found if isinstance(found, tuple) else (found,)
        return tensors[region.outputs.index(n)]


def problems(unit: CapturedUnit) -> tuple[tuple[Region, ...], list[Definition]]:
    regions = partition(unit.graph_module.graph)
    seen = record(unit, borders(regions))
    return regions, [extract(r, seen).definition for r in regions]


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_replacing_every_region_changes_no_bit(name):
    model, args, kwargs = make(name)
    (unit,) = capture_units(model, args, kwargs).units
    regions, definitions = problems(unit)
    models = {i: load_problem(d).build(0) for i, d in enumerate(definitions)}
    with torch.no_grad():
        wanted = tree_leaves(unit.graph_module(*args, **kwargs))
        got = Replacing(unit, regions, models).run(*flat_arguments(unit), enable_io_processing=False)
    for a, b in zip(tree_leaves(got), wanted, strict=True):
        assert torch.equal(a, b)


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_a_definition_runs_alone_with_the_captured_shapes(name):
    model, args, kwargs = make(name)
    (unit,) = capture_units(model, args, kwargs).units
    regions = partition(unit.graph_module.graph)
    seen = record(unit, borders(regions))
    for region in regions:
        extracted = extract(region, seen)
        problem = load_problem(extracted.definition)
        inputs, _ = problem.inputs(3)
        for drawn, node in zip(inputs, region.inputs, strict=True):
            spec = seen[node].tensor
            assert tuple(drawn.shape) == spec.shape
            assert str(drawn.dtype) == f"torch.{spec.dtype.value}"
            if spec.strides is not None and spec.numel > 1:
                assert drawn.stride() == spec.strides
        with torch.no_grad():
            found = problem.build(0)(*inputs)
        outputs = found if isinstance(found, tuple) else (found,)
        assert [tuple(o.shape) for o in outputs] == [seen[o].tensor.shape for o in region.outputs]
        for output in outputs:
            assert not output.isnan().any(), extracted.definition.reference


def test_equal_layers_share_a_structure():
    class Two(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = (torch.nn.LayerNorm(16) for _ in range(2))
            self.fc = torch.nn.Linear(16, 16)

        def forward(self, x):
            return self.b(self.fc(self.a(x)))

    (unit,) = capture_units(Two().eval(), (torch.randn(4, 16),), {}).units
    regions = partition(unit.graph_module.graph)
    seen = record(unit, borders(regions))
    norms = [structure_key(r, seen) for r in regions if r.op_type == "norm"]
    assert len(norms) == 2
    assert len(set(norms)) == 1


def test_a_causal_additive_mask_is_kept_as_one():
    class Masked(torch.nn.Module):
        def forward(self, x, mask):
            return torch.softmax(x + mask, -1)

    mask = torch.full((8, 8), float("-inf")).triu(1)
    (unit,) = capture_units(Masked(), (torch.randn(2, 8, 8), mask), {}).units
    (region,) = partition(unit.graph_module.graph)
    extracted = extract(region, record(unit, borders((region,))))
    assert extracted.workload.source == "reference"
    drawn = load_problem(extracted.definition).inputs(0)[0]
    assert any(torch.equal(d, mask) for d in drawn)


def test_a_written_problem_imports_from_disk(tmp_path):
    model, args, kwargs = make("llama")
    (unit,) = capture_units(model, args, kwargs).units
    _, definitions = problems(unit)
    path = tmp_path / "problem.py"
    path.write_text(definitions[0].reference)
    namespace: dict[str, Any] = {"__name__": "problem"}
    exec(compile(path.read_text(), str(path), "exec"), namespace)
    assert isinstance(
        namespace["Model"](*namespace["get_init_inputs"]())(*namespace["get_inputs"]()), torch.Tensor
    )


def test_a_complex_number_is_written():
    class Turned(torch.nn.Module):
        def forward(self, z):
            return (z * (0.5 - 2j)).abs()

    z = torch.randn(4, 8, dtype=torch.complex64)
    (unit,) = capture_units(Turned().eval(), (z,), {}).units
    _, definitions = problems(unit)
    (definition,) = [d for d in definitions if "complex(0.5, -2.0)" in d.reference]
    assert torch.equal(load_problem(definition).build(0)(z).abs(), Turned()(z))


def test_weights_in_lists_and_sizes_that_depend_on_values_can_be_written():
    class Odd(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.scales = torch.nn.ParameterList([torch.randn(8), torch.randn(8)])

        def forward(self, x, ids):
            for scale in self.scales:
                x = torch.nn.functional.silu(x * scale)
            return x, torch.bincount(ids, minlength=8)

    (unit,) = capture_units(Odd().eval(), (torch.randn(4, 8), torch.arange(5)), {}).units
    regions = partition(unit.graph_module.graph)
    seen = record(unit, borders(regions))
    (chain, counts) = [
        extract(r, seen).definition for r in regions if str(r.nodes[-1].target)[5:9] in ("silu", "binc")
    ]
    assert "def forward(self, x, weight_0, weight_1)" in chain.reference
    problem = load_problem(chain)
    assert problem.build(0)(*problem.inputs(0)[0]).shape == (4, 8)
    assert "# int64[u" in counts.reference


def test_a_dtype_that_workloads_cannot_name_is_the_reason():
    z = torch.randn(4, 8, dtype=torch.complex128)
    (unit,) = capture_units(torch.nn.Sequential(torch.nn.Tanh()).eval(), (z,), {}).units
    (region,) = partition(unit.graph_module.graph)
    with pytest.raises(CannotExtract, match=r"is of a dtype that is not supported \(complex128\)"):
        extract(region, record(unit, borders((region,))))
