"""Time operators on a GPU by what its profiler says of their kernels, and the host by what is left over.

Waiting for the GPU after each operator would count every launch as the operator's own time. Here a forward
runs as it would; kernels are bound to the operators that launched them, and the time in which the GPU had
nothing to do is a place of its own: no kernel makes it shorter, fewer launches or a CUDA graph do.
"""

from __future__ import annotations

import json
import statistics
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch.fx import Interpreter, Node

from agentforge.schema import CallSite, Profile

from .capture import Unit
from .kernels import MARK, DeviceTime, device_time
from .record import flat_arguments
from .timing import Clock, Traces

HOST = "host and launches"
"""Name of the call site of the time in which the GPU waits for the host."""
WORTH_TELLING = 0.1
"""Share of the host's time from which on it is told, and a CUDA graph is tried."""

Rows = list[dict[str, Any]]
Profiler = Callable[[Callable[[], Any]], Rows]
"""Runs a forward and gives the rows of its trace."""


@dataclass(frozen=True)
class DeviceTraces:
    """What was measured on a GPU."""

    traces: Traces
    host_s: float
    """Of one forward, in which no kernel ran."""
    launches: int
    """Of one forward: kernels, copies, fills and CUDA graphs."""
    kernels: Mapping[Node, tuple[str, ...]]
    """Names of those that an operator launched, in their order."""

    def call_site(self) -> CallSite:
        """The host's time as a place in the model."""
        return CallSite(name=HOST, nodes=(), operators=(), time_s=self.host_s)

    def kernels_of(self, nodes: Sequence[Node]) -> tuple[str, ...]:
        """Names of the kernels of some operators."""
        return tuple(name for node in nodes for name in self.kernels.get(node, ()))

    def notes(self) -> list[str]:
        """What a reader must know of the host's share."""
        share = self.host_s / self.traces.total_s if self.traces.total_s else 0.0
        if share < WORTH_TELLING:
            return []
        return [
            f"the GPU waits for the host {share:.0%} of a forward's time, in which it makes {self.launches} "
            "launches: fewer kernels or a CUDA graph shorten that, faster kernels do not"
        ]


def host_share(profile: Profile) -> float:
    """Share of a forward's time in which the GPU waits for the host, 0 to 1; 0 on a CPU."""
    waited = sum(site.time_s for site in profile.call_sites if site.name == HOST)
    return waited / profile.total_s if profile.total_s else 0.0


class _Marked(Interpreter):
    """Runs a graph with a mark around each operator."""

    def __init__(self, unit: Unit) -> None:
        super().__init__(unit.graph_module)
        self._unit = unit

    def run_node(self, n: Node) -> Any:
        with _mark(self._unit, n):
            return super().run_node(n)


def _mark(unit: Unit, node: Node) -> AbstractContextManager[Any]:
    return torch.profiler.record_function(MARK + mark_of(unit, node))


def mark_of(unit: Unit, node: Node) -> str:
    """What a mark says of a node."""
    return f"{unit.path}/{node.name}"


def profiled(call: Callable[[], Any]) -> Rows:
    """Run a forward under torch's profiler."""
    activities = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
    with torch.profiler.profile(activities=activities) as profiler:
        call()
        torch.cuda.synchronize()
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "trace.json"
        profiler.export_chrome_trace(str(place))
        rows: Rows = json.loads(place.read_text())["traceEvents"]
        return rows


def measure_on_device(
    model: Callable[[], Any],
    units: Sequence[Unit],
    device: torch.device,
    traces: int,
    profiler: Profiler = profiled,
) -> DeviceTraces:
    """Time eager forwards, and operators by the kernels that they launched.

    Args:
        model: runs one eager forward.
        units: the captured graphs.
        device: where it runs.
        traces: rounds.
        profiler: of the device.
    """
    clock = Clock(device)
    operators = _operators(units)
    nodes: dict[Node, list[float]] = {}
    busy: list[float] = []
    kernels: dict[Node, tuple[str, ...]] = {}
    whole = DeviceTime({}, {}, 0.0)
    marks = {
        node: mark_of(unit, node)
        for unit in units
        for node in unit.graph_module.graph.nodes
        if node.op == "call_function"
    }
    with torch.no_grad():
        clock.time(model)  # compilers and allocators warm up
        # Before the profiler is there: what it leaves in the driver makes each launch a little longer.
        totals = tuple(clock.time(model)[0] for _ in range(traces))
        profiler(operators)  # it asks for its buffers when the first kernel is launched
        for _ in range(traces):
            whole = device_time(profiler(model))
            busy.append(whole.busy_s)
            found = device_time(profiler(operators))
            for node, mark in marks.items():
                nodes.setdefault(node, []).append(found.by_mark.get(mark, 0.0))
                kernels[node] = found.kernels.get(mark, ())
    measured = Traces({n: tuple(v) for n, v in nodes.items()}, totals)
    host_s = max(measured.total_s - statistics.median(busy), 0.0)
    return DeviceTraces(measured, host_s, whole.launches, kernels)


def _operators(units: Sequence[Unit]) -> Callable[[], None]:
    def run() -> None:
        for unit in units:
            _Marked(unit).run(*flat_arguments(unit), enable_io_processing=False)

    return run
