"""Time operators on a GPU from the profiler's kernel records; the remaining time belongs to the host.

Synchronising after each operator would count every launch as operator time. GPU idle time becomes a call site
of its own: fewer launches or a CUDA graph shorten it, faster kernels do not.
"""

from __future__ import annotations

import json
import statistics
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch.fx import Interpreter, Node

from agentforge.schema import CallSite, Profile

from ..graph.capture import CapturedUnit
from ..graph.value_capture import flat_arguments
from .host import Clock, Traces
from .kernel_attribution import MARK, DeviceTime, device_time

HOST = "host and launches"
"""Name of the call site for the time in which the GPU waits for the host."""
REPORTED_SHARE = 0.1
"""Host share from which the profile reports it and a CUDA graph is tried."""

T = TypeVar("T")
Rows = list[dict[str, Any]]
Profiler = Callable[[Callable[[], Any]], Rows]
"""Runs a forward and returns the rows of its trace."""


@dataclass(frozen=True)
class DeviceTraces:
    """Measurements on a GPU."""

    traces: Traces
    host_s: float
    """Seconds of one forward in which no kernel ran."""
    launches: int
    """Launches in one forward: kernels, copies, fills and CUDA graphs."""
    kernels: Mapping[Node, tuple[str, ...]]
    """Names of the kernels that each operator launched, in order."""

    def call_site(self) -> CallSite:
        """The host's time as a call site."""
        return CallSite(name=HOST, nodes=(), operators=(), time_s=self.host_s)

    def kernels_of(self, nodes: Sequence[Node]) -> tuple[str, ...]:
        """Names of the kernels that some operators launched."""
        return tuple(name for node in nodes for name in self.kernels.get(node, ()))

    def notes(self) -> list[str]:
        """Note on the host's share for the reader, if it is large."""
        share = self.host_s / self.traces.total_s if self.traces.total_s else 0.0
        if share < REPORTED_SHARE:
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
    """Runs a graph with a profiler mark around each operator."""

    def __init__(self, unit: CapturedUnit) -> None:
        super().__init__(unit.graph_module)
        self._unit = unit

    def run_node(self, n: Node) -> Any:
        with _mark(self._unit, n):
            return super().run_node(n)


def _mark(unit: CapturedUnit, node: Node) -> AbstractContextManager[Any]:
    return torch.profiler.record_function(MARK + mark_of(unit, node))


def mark_of(unit: CapturedUnit, node: Node) -> str:
    """Name of a node's mark."""
    return f"{unit.name}/{node.name}"


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
    units: Sequence[CapturedUnit],
    device: torch.device,
    traces: int,
    profiler: Profiler = profiled,
    restore: Callable[[], None] = lambda: None,
) -> DeviceTraces:
    """Time eager forwards, and operators by the kernels that they launched.

    Args:
        restore: called before each run, untimed: it undoes what runs write to buffers and arguments.
    """
    clock = Clock(device)
    operators = _operators(units)

    def restored(run: Callable[[Callable[[], Any]], T], call: Callable[[], Any]) -> T:
        restore()
        return run(call)

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
        restored(clock.time, model)  # compilers and allocators warm up
        # Measured before the profiler starts: its hooks in the driver lengthen each launch a little.
        totals = tuple(restored(clock.time, model)[0] for _ in range(traces))
        restored(profiler, operators)  # it allocates its buffers at the first kernel launch
        for _ in range(traces):
            whole = device_time(restored(profiler, model))
            busy.append(whole.busy_s)
            found = device_time(restored(profiler, operators))
            for node, mark in marks.items():
                nodes.setdefault(node, []).append(found.by_mark.get(mark, 0.0))
                kernels[node] = found.kernels.get(mark, ())
    measured = Traces({n: tuple(v) for n, v in nodes.items()}, totals)
    host_s = max(measured.total_s - statistics.median(busy), 0.0)
    return DeviceTraces(measured, host_s, whole.launches, kernels)


def _operators(units: Sequence[CapturedUnit]) -> Callable[[], None]:
    def run() -> None:
        for unit in units:
            _Marked(unit).run(*flat_arguments(unit), enable_io_processing=False)

    return run
