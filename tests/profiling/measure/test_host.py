from __future__ import annotations

import pytest
import torch
from torch import nn

from agentforge.profiling.graph.capture import Buffers, CapturedUnit, capture_units
from agentforge.profiling.graph.regions import partition
from agentforge.profiling.graph.value_capture import record
from agentforge.profiling.measure.device import measure_on_device
from agentforge.profiling.measure.host import ablate, measure

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
