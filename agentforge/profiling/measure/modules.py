"""Eager time of modules that could not be exported, by module path."""

from __future__ import annotations

import statistics
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping
from typing import Any, Protocol

import torch

from .device import profiled
from .kernel_attribution import MARK, device_time


class Watch(Protocol):
    """Measures the time between a module's entry and exit, without that of the modules inside it."""

    def enter(self, path: str) -> None:
        """A module's forward begins."""
        ...

    def leave(self) -> None:
        """The forward that began last ends."""
        ...

    def trace(self, forward: Callable[[], Any]) -> Mapping[str, float]:
        """Seconds of one forward by path."""
        ...


def self_times(
    model: torch.nn.Module, forward: Callable[[], Any], exported: Collection[str], traces: int, watch: Watch
) -> dict[str, float]:
    """Median seconds in one forward by the module that spent them; those inside it have their own.

    Exported units are omitted: their graphs cover them. TorchScript refuses hooks, so the time of a scripted
    module is its parent's.
    """
    modules = [
        (path, module)
        for path, module in model.named_modules()
        if not isinstance(module, torch.jit.ScriptModule) and not _inside(path.rpartition(".")[0], exported)
    ]
    handles = [h for path, module in modules for h in _watched(path, module, watch)]
    try:
        with torch.no_grad():
            found = [watch.trace(forward) for _ in range(traces + 1)][1:]
    finally:
        for handle in handles:
            handle.remove()
    paths = {p for trace in found for p in trace if not _inside(p, exported)}
    return {p: statistics.median(t.get(p, 0.0) for t in found) for p in sorted(paths)}


def _watched(path: str, module: torch.nn.Module, watch: Watch) -> list[Any]:
    return [
        module.register_forward_pre_hook(lambda *_: watch.enter(path)),
        module.register_forward_hook(lambda *_: watch.leave(), always_call=True),
    ]


class WallClock:
    """On a CPU, or a GPU whose kernels the profiler does not see. The profiler's records would lengthen each
    operator by microseconds: a recurrent layer over packed sequences, with many small operators, would take
    longer than the forward that contains it.

    Args:
        drain: waits until the device is idle.
    """

    def __init__(self, drain: Callable[[], None] = lambda: None) -> None:
        self._drain = drain
        self._open: dict[int, list[list[Any]]] = defaultdict(list)
        """Path, begin and seconds of inner modules of the forwards that are running, by thread."""
        self._seconds: dict[str, float] = {}

    def enter(self, path: str) -> None:
        """See `Watch`."""
        self._drain()
        self._open[threading.get_ident()].append([path, time.perf_counter(), 0.0])

    def leave(self) -> None:
        """See `Watch`."""
        self._drain()
        now, running = time.perf_counter(), self._open[threading.get_ident()]
        path, begin, inner = running.pop()
        self._seconds[path] = self._seconds.get(path, 0.0) + now - begin - inner
        if running:
            running[-1][2] += now - begin

    def trace(self, forward: Callable[[], Any]) -> Mapping[str, float]:
        """See `Watch`."""
        self._seconds = {}
        forward()
        return self._seconds


class KernelTime:
    """On a GPU: time of the kernels that a module launches, without host time."""

    def __init__(self) -> None:
        self._open: dict[int, list[Any]] = defaultdict(list)

    def enter(self, path: str) -> None:
        """See `Watch`."""
        mark = torch.profiler.record_function(MARK + path)
        self._open[threading.get_ident()].append(mark)
        mark.__enter__()

    def leave(self) -> None:
        """See `Watch`."""
        self._open[threading.get_ident()].pop().__exit__(None, None, None)

    def trace(self, forward: Callable[[], Any]) -> Mapping[str, float]:
        """See `Watch`."""
        return device_time(profiled(forward)).by_mark


def _inside(path: str, exported: Collection[str]) -> bool:
    return any(path == unit or path.startswith(f"{unit}.") for unit in exported)
