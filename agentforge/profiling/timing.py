"""Time every operator of a captured graph, and the model as it is, in the same minutes."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.fx import Interpreter, Node

from .capture import Unit
from .record import flat_arguments

_LEAST_S = 1.0
_MOST_TRACES = 30
"""Short models are traced more often than asked, for a second in all: their medians need it most."""
_ABLATION_S = 8.0
"""Seconds after which no further pair of an ablation begins."""
_UNSTEADY = 0.25
"""Spread of the eager totals (interquartile range / median) above which we say so."""


@dataclass(frozen=True)
class Traces:
    """Seconds, one entry a trace."""

    nodes: Mapping[Node, tuple[float, ...]]
    """Self time of each operator in one call of its unit."""
    totals: tuple[float, ...]
    """Whole eager forwards, interleaved with the traces."""

    @property
    def total_s(self) -> float:
        return statistics.median(self.totals)

    def time_of(self, nodes: Collection[Node]) -> float:
        """Median over the traces of the nodes' summed time."""
        series = [self.nodes[n] for n in nodes if n in self.nodes]
        return statistics.median(map(sum, zip(*series, strict=True))) if series else 0.0

    @property
    def spread(self) -> float:
        """Interquartile range of the totals, relative to their median."""
        if len(self.totals) < 4:
            return 0.0
        quarters = statistics.quantiles(self.totals, n=4)
        return (quarters[2] - quarters[0]) / self.total_s

    @property
    def unsteady(self) -> bool:
        return self.spread > _UNSTEADY


class Clock:
    """Seconds of one call, on a CPU by the wall clock, on CUDA with the stream drained on both sides."""

    def __init__(self, device: torch.device) -> None:
        self._drain: Callable[[], None] = torch.cuda.synchronize if device.type == "cuda" else lambda: None

    def time(self, call: Callable[[], Any]) -> tuple[float, Any]:
        """Run `call`; its seconds and its result."""
        self._drain()
        start = time.perf_counter()
        result = call()
        self._drain()
        return time.perf_counter() - start, result


class _Timer(Interpreter):
    def __init__(self, unit: Unit, clock: Clock) -> None:
        super().__init__(unit.graph_module)
        self.clock = clock
        self.seconds: dict[Node, float] = {}
        self._node: Node | None = None

    def run_node(self, n: Node) -> Any:
        self._node = n
        return super().run_node(n)

    def call_function(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        seconds, result = self.clock.time(lambda: target(*args, **kwargs))
        assert self._node is not None
        self.seconds[self._node] = seconds
        return result


def measure(model: Callable[[], Any], units: Sequence[Unit], device: torch.device, traces: int) -> Traces:
    """Trace all units and time the eager model, in turn, after one warm-up round.

    Args:
        model: runs one eager forward.
        units: the captured graphs.
        device: where it runs.
        traces: rounds to keep at least.
    """
    clock = Clock(device)
    nodes: dict[Node, list[float]] = {}
    totals: list[float] = []
    with torch.no_grad():
        clock.time(model)
        for unit in units:
            _trace(unit, clock)
        while len(totals) < traces or (sum(totals) < _LEAST_S and len(totals) < _MOST_TRACES):
            seconds, _ = clock.time(model)
            found = [_trace(unit, clock) for unit in units]
            totals.append(seconds)
            for trace in found:
                for node, value in trace.items():
                    nodes.setdefault(node, []).append(value)
    return Traces({n: tuple(v) for n, v in nodes.items()}, tuple(totals))


def _trace(unit: Unit, clock: Clock) -> dict[Node, float]:
    timer = _Timer(unit, clock)
    timer.run(*flat_arguments(unit), enable_io_processing=False)
    return timer.seconds


class _Ablated(Interpreter):
    """Runs a graph with some nodes' values given and others left out."""

    def __init__(self, unit: Unit, given: Mapping[Node, Any], skipped: Collection[Node]) -> None:
        super().__init__(unit.graph_module)
        self.given = given
        self.skipped = frozenset(skipped)

    def run_node(self, n: Node) -> Any:
        if n in self.given:
            return self.given[n]
        return None if n in self.skipped else super().run_node(n)


class _Keeper(Interpreter):
    """Keeps the values of some nodes."""

    def __init__(self, unit: Unit, wanted: Collection[Node]) -> None:
        super().__init__(unit.graph_module)
        self.wanted = frozenset(wanted)
        self.kept: dict[Node, Any] = {}

    def run_node(self, n: Node) -> Any:
        value = super().run_node(n)
        if n in self.wanted:
            self.kept[n] = value
        return value


def ablate(
    unit: Unit, nodes: Collection[Node], outputs: Collection[Node], device: torch.device, rounds: int
) -> float:
    """Share of a unit's time that goes away when the values of `outputs` are given, 0 to 1.

    Args:
        unit: the graph.
        nodes: what need not run then.
        outputs: those of `nodes` whose values leave them.
        device: where it runs.
        rounds: pairs of runs; the median of paired differences counts.
    """
    clock = Clock(device)
    arguments = flat_arguments(unit)
    with torch.no_grad():
        keeper = _Keeper(unit, outputs)
        keeper.run(*arguments, enable_io_processing=False)
        shares: list[float] = []
        started = time.perf_counter()
        while len(shares) < rounds and (not shares or time.perf_counter() - started < _ABLATION_S):
            whole, _ = clock.time(lambda: _Ablated(unit, {}, ()).run(*arguments, enable_io_processing=False))
            without, _ = clock.time(
                lambda: _Ablated(unit, keeper.kept, nodes).run(*arguments, enable_io_processing=False)
            )
            shares.append(1 - without / whole)
    return min(max(statistics.median(shares), 0.0), 1.0)
