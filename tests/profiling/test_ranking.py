"""Which call sites without a kernel get a note."""

from __future__ import annotations

import torch
from torch import nn

from agentforge.devices import DeviceSpec, Roofline
from agentforge.profiling.cost import cost_of
from agentforge.profiling.graph.regions import partition
from agentforge.profiling.graph.value_capture import record
from agentforge.profiling.ranking import Site, rank
from agentforge.schema import CallSite
from tests.profiling.captured import capture_units

DEVICE = DeviceSpec(kind="cpu", name="test", architecture="none", cache_bytes=(1 << 15, 1 << 20))
ROOFLINE = Roofline(bandwidth=1e10, peak_flops={"float32": 1e11}, call_overhead_s=1e-6)


@torch.library.custom_op("agentforge_tests::twice", mutates_args=())
def twice(x: torch.Tensor) -> torch.Tensor:
    """An operator that the graph has as one node."""
    return x * 2


@twice.register_fake
def _(x: torch.Tensor) -> torch.Tensor:
    return torch.empty_like(x)


class Layers(nn.Module):
    def forward(self, x):
        for _ in range(3):
            x = twice(x).relu()
        return x


def notes(seconds: float) -> list[str]:
    """Notes on a forward of one second, in which each call of the operator takes this time."""
    (unit,) = capture_units(Layers().eval(), (torch.randn(4, 8),), {}).units
    regions = partition(unit.graph_module.graph)
    seen = record(unit, {n for r in regions for n in (*r.inputs, *r.outputs)})
    sites = []
    for number, region in enumerate(regions):
        operators = tuple(str(n.target) for n in region.nodes)
        time_s = seconds if "twice" in str(operators) else 0.1
        names = tuple(n.name for n in region.nodes)
        call_site = CallSite(name=f"site{number}", nodes=names, operators=operators, time_s=time_s)
        sites.append(Site(call_site, region, seen, cost_of(region, seen, DEVICE, ROOFLINE), calls=1))
    return rank(sites, total_s=1.0)[1]


def test_call_sites_with_one_reason_share_a_note():
    reason = "no kernel: agentforge_tests::twice is no built-in tensor operator of PyTorch"
    assert notes(0.005) == [f"site0 and 2 more get {reason}"]


def test_call_sites_below_a_hundredth_of_the_time_get_no_note():
    assert notes(0.003) == []
