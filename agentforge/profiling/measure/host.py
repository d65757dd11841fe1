"""Time every operator of a captured graph and the whole model, interleaved."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch.fx import Interpreter, Node

from ..graph.capture import Buffers, CapturedUnit
from ..graph.value_capture import Recorder, flat_arguments

_LEAST_S = 1.0
_MOST_TRACES = 30
"""Short models are traced more often, for one second in total: their medians need it most."""
_ABLATION_S = 8.0
"""Seconds after which no further ablation pair starts."""
_UNSTEADY = 0.25
"""Spread of the eager totals (interquartile range / median) above which a note is added."""


@dataclass(frozen=True)
class Traces:
    """Seconds, one entry per trace."""

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
    """Times one call in seconds: on a CPU by the wall clock, on CUDA with a synchronised stream before and
    after.
    """

    def __init__(self, device: torch.device) -> None:
        self.drain: Callable[[], None] = torch.cuda.synchronize if device.type == "cuda" else lambda: None

    def time(self, call: Callable[[], Any]) -> tuple[float, Any]:
        """Run `call`; return its seconds and its result."""
        self.drain()
        start = time.perf_counter()
        result = call()
        self.drain()
        return time.perf_counter() - start, result


class _Timer(Interpreter):
    def __init__(self, unit: CapturedUnit, clock: Clock) -> None:
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


def measure(
    model: Callable[[], Any],
    units: Sequence[CapturedUnit],
    device: torch.device,
    traces: int,
    restore: Callable[[], None] = lambda: None,
) -> Traces:
    """Trace all units and time the eager model in alternation, after one warm-up round.

    Args:
        traces: minimum number of rounds to keep.
        restore: called before each run, untimed: it undoes what runs write to buffers and arguments.
    """
    clock = Clock(device)
    nodes: dict[Node, list[float]] = {}
    totals: list[float] = []
    with torch.no_grad():
        restore()
        clock.time(model)
        for unit in units:
            restore()
            _trace(unit, clock)
        while len(totals) < traces or (sum(totals) < _LEAST_S and len(totals) < _MOST_TRACES):
            restore()
            totals.append(clock.time(model)[0])
            for unit in units:
                restore()
                for node, value in _trace(unit, clock).items():
                    nodes.setdefault(node, []).append(value)
    return Traces({n: tuple(v) for n, v in nodes.items()}, tuple(totals))


def _trace(unit: CapturedUnit, clock: Clock) -> dict[Node, float]:
    timer = _Timer(unit, clock)
    timer.run(*flat_arguments(unit), enable_io_processing=False)
    return timer.seconds


class _Ablated(Interpreter):
    """Runs a graph with known values for some nodes and without running others."""

    def __init__(self, unit: CapturedUnit, known: Mapping[Node, Any], skipped: Collection[Node]) -> None:
        super().__init__(unit.graph_module)
        self.known = known
        self.skipped = frozenset(skipped)

    def run_node(self, n: Node) -> Any:
        if n in self.known:
            return self.known[n]
        return None if n in self.skipped else super().run_node(n)


def ablate(
    unit: CapturedUnit, nodes: Collection[Node], outputs: Collection[Node], device: torch.device, rounds: int
) -> float:
    """Share of a unit's time that is saved if the values of `outputs` are already known, 0 to 1.

    Args:
        outputs: those of `nodes` whose values are used outside.
        rounds: pairs of runs; the result is the median of paired differences.
    """
    clock, arguments = Clock(device), flat_arguments(unit)
    buffers = Buffers(unit.graph_module, arguments=arguments)

    def seconds(known: Mapping[Node, Any], skipped: Collection[Node]) -> float:
        buffers.restore()
        run = partial(_Ablated(unit, known, skipped).run, *arguments, enable_io_processing=False)
        return clock.time(run)[0]

    with torch.no_grad():
        keeper = Recorder(unit, outputs)
        keeper.run(*arguments, enable_io_processing=False)
        shares: list[float] = []
        started = time.perf_counter()
        while len(shares) < rounds and (not shares or time.perf_counter() - started < _ABLATION_S):
            whole, without = seconds({}, ()), seconds(keeper.kept, nodes)
            shares.append(1 - without / whole)
    buffers.restore()
    return min(max(statistics.median(shares), 0.0), 1.0)
