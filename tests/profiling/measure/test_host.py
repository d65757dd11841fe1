from __future__ import annotations

import pytest
import torch
from torch import nn

from agentforge.profiling.graph.capture import Buffers, CapturedUnit
from agentforge.profiling.graph.regions import partition
from agentforge.profiling.graph.value_capture import record
from agentforge.profiling.measure.device import measure_on_device
from agentforge.profiling.measure.host import ablate, measure
from tests.profiling.captured import capture_units

from ..models import Cache
from .test_kernel_attribution import simulated

CPU = torch.device("cpu")


X = torch.randn(1, 8)


@pytest.fixture
def captured() -> tuple[nn.Module, CapturedUnit]:
    model = Cache().eval()
    (unit,) = capture_units(model, (X,), {}).units
    return model, unit


def test_a_run_undoes_what_it_writes_to_buffers(captured):
    _, unit = captured
    regions = partition(unit.graph_module.graph)
    wanted = {n for region in regions for n in (*region.inputs, *region.outputs)}
    for _ in range(5):
        seen = record(unit, wanted)
    assert seen
    last = regions[-1]
    assert 0 <= ablate(unit, last.nodes, last.outputs, CPU, 5) <= 1
    assert int(unit.graph_module.get_buffer("position")) == 0


def test_buffers_are_restored_before_each_timed_run(captured):
    model, unit = captured
    buffers = Buffers(model, unit.graph_module)
    traces = measure(lambda: model(X), [unit], CPU, 5, buffers.restore)
    assert len(traces.totals) >= 5
    on_device = measure_on_device(lambda: model(X), [unit], CPU, 5, simulated, buffers.restore)
    assert len(on_device.traces.totals) == 5
    buffers.restore()
    assert int(model.position) == 0
    assert not model.rows.any()


class Step(nn.Module):
    """A step of a decoder whose cache and position are arguments, with room for three rows."""

    def forward(self, x, rows, position):
        rows.index_copy_(0, position, x * 2)
        position += 1
        return torch.relu(rows + x).sum(0)


def arguments() -> tuple[torch.Tensor, ...]:
    return torch.randn(1, 8), torch.zeros(3, 8), torch.zeros(1, dtype=torch.int64)


def test_a_run_undoes_what_it_writes_to_arguments():
    args = arguments()
    (unit,) = capture_units(Step().eval(), args, {}).units
    regions = partition(unit.graph_module.graph)
    for _ in range(5):
        assert record(unit, {n for region in regions for n in region.outputs})
    assert 0 <= ablate(unit, regions[-1].nodes, regions[-1].outputs, CPU, 5) <= 1
    model, buffers = Step(), Buffers(unit.graph_module, arguments=args)
    traces = measure(lambda: model(*args), [unit], CPU, 5, buffers.restore)
    assert len(traces.totals) >= 5
    buffers.restore()
    assert int(args[2]) == 0
    assert not args[1].any()


def test_a_model_in_parts_is_observed_without_a_trace_in_its_arguments():
    class Parts(nn.Module):
        def __init__(self):
            super().__init__()
            self.step = Step()

        def forward(self, x, rows, position):
            return x if x.sum().item() > 1e9 else self.step(x, rows, position)

    args = arguments()
    (unit,) = capture_units(Parts().eval(), args, {}).units
    assert unit.path == "step"
    assert int(args[2]) == 0
    assert not args[1].any()


def test_views_of_one_memory_are_restored_and_what_overlaps_itself_is_left_alone():
    memory, row = torch.zeros(2, 4), torch.zeros(1, 4)
    given = [memory, memory[0], row.expand(3, 4), 1.0, None]
    buffers = Buffers(arguments=given)
    for _ in range(2):
        memory[0] += 1
        given[2][0] += 1
        buffers.restore()
        assert not memory.any()
