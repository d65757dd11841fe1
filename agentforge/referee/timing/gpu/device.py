"""What timing needs of a GPU: one call between events, all streams waited for, a cold L2."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch.utils import _pytree as pytree

_LIMIT_PERSISTING_L2 = 0x06
"""cudaLimitPersistingL2CacheSize."""
_NOT_READY = 600
"""cudaErrorNotReady, which asking for an event's state leaves: no failure."""
_LAUNCHES = 10
"""Rounds of small launches before a call. After a pause the code that launches is in no cache: a call of
190 us took 270 us on an H100, and 190 to 220 us after such launches."""
_FORMS = 8
"""Graphs of one model that are kept, each with its own memory."""


@dataclass(frozen=True)
class CallTime:
    """Seconds of one call by both clocks."""

    events_s: float
    """Between two CUDA events on the current stream."""
    clock_s: float
    """By the host, until every stream of the device was idle."""
    rest_s: float = 0.0
    """The part of `clock_s` after the second event: what other streams still did then."""


class Gpu(Protocol):
    """Times calls on one device and looks after it; a simulated one replaces it on a machine without one."""

    def prepare(self) -> None:
        """Wait for all streams, give no data a place in the L2 that it keeps, and evict its content."""
        ...

    def time(self, call: Callable[[], Any]) -> CallTime:
        """Run `call` once.

        Raises:
            RuntimeError: a launch of it failed.
        """
        ...

    def release(self) -> None:
        """Give memory that no tensor uses back to the device, for other processes."""
        ...

    def usable(self) -> bool:
        """Whether this process can still use the device. A failed assertion or an illegal address in a kernel
        ends that for good, and the process goes on."""
        ...


class HostClock:
    """Replaces a GPU on a machine without one: no cache to empty, and the host's clock for events."""

    def prepare(self) -> None:
        """See `Gpu.prepare`."""

    def time(self, call: Callable[[], Any]) -> CallTime:
        """See `Gpu.time`."""
        begin = time.perf_counter()
        call()
        spent = time.perf_counter() - begin
        return CallTime(spent, spent)

    def release(self) -> None:
        """See `Gpu.release`."""

    def usable(self) -> bool:
        """See `Gpu.usable`."""
        return True


class TorchGpu:
    """A GPU by torch. Make it before any untrusted code is imported: it keeps the functions that it found.

    Args:
        events: time calls by CUDA events; if not, by the host's clock from one idle device to the next.
    """

    def __init__(self, index: int = 0, *, events: bool = True) -> None:
        self._device = torch.device("cuda", index)
        properties = torch.cuda.get_device_properties(index)
        self.uuid = str(getattr(properties, "uuid", index))
        self.l2_bytes = int(getattr(properties, "L2_cache_size", 0)) or 64 << 20
        self._synchronize = torch._C._cuda_synchronize
        self._empty_cache = torch._C._cuda_emptyCache
        self._captures = torch.cuda.is_current_stream_capturing
        self._events = (
            (torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)) if events else None
        )
        self._record = torch.cuda.Event.record
        self._elapsed = torch.cuda.Event.elapsed_time
        self._reached = torch.cuda.Event.synchronize
        self._clock = time.perf_counter
        self._scratch = torch.empty(2 * self.l2_bytes, dtype=torch.uint8, device=self._device)
        self._zero = torch.Tensor.zero_
        self._small = torch.zeros(64, device=self._device)
        self._operations = (torch.Tensor.add_, torch.Tensor.mul_, torch.Tensor.copy_)
        self._sum = torch.Tensor.sum
        self._runtime = _runtime()

    def prepare(self) -> None:
        """See `Gpu.prepare`."""
        self._synchronize()
        if self._runtime is not None:
            self._runtime.cudaDeviceSetLimit(_LIMIT_PERSISTING_L2, ctypes.c_size_t(0))
            self._runtime.cudaCtxResetPersistingL2Cache()
            self._runtime.cudaGetLastError()  # else torch's next launch raises if a device has neither
        self._zero(self._scratch)
        small = self._small
        for _ in range(_LAUNCHES):
            total = self._sum(small)
            for operation in self._operations:
                operation(small, total)
        self._synchronize()

    def time(self, call: Callable[[], Any]) -> CallTime:
        """See `Gpu.time`."""
        if self._events is None:
            return self._time_by_host(call)
        start, end = self._events
        begin = self._clock()
        self._record(start)
        call()
        self._record(end)
        self._check_launches()
        self._reached(end)
        reached = self._clock()
        self._synchronize()
        idle = self._clock()
        return CallTime(self._elapsed(start, end) * 1e-3, idle - begin, idle - reached)

    def _time_by_host(self, call: Callable[[], Any]) -> CallTime:
        self._synchronize()
        begin = self._clock()
        call()
        self._synchronize()
        spent = self._clock() - begin
        self._check_launches()
        return CallTime(spent, spent)

    def _check_launches(self) -> None:
        """A launch that the run-time library refused wrote nothing, and only asking tells: without a wait."""
        if self._runtime is None:
            return
        code = self._runtime.cudaGetLastError()
        if code not in (0, _NOT_READY):
            text = self._runtime.cudaGetErrorString
            text.restype = ctypes.c_char_p
            raise RuntimeError(f"a launch of the call failed: {text(code).decode()}")

    def release(self) -> None:
        """See `Gpu.release`."""
        self._empty_cache()

    def usable(self) -> bool:
        """See `Gpu.usable`. While the current stream captures a graph, nothing can be waited for."""
        try:
            if not self._captures():
                self._synchronize()
        except RuntimeError:
            return False
        return True


def _runtime() -> ctypes.CDLL | None:
    """The CUDA run-time library that torch has loaded."""
    major = (torch.version.cuda or "").split(".")[0]
    for name in (f"libcudart.so.{major}", "libcudart.so"):
        with suppress(OSError):
            return ctypes.CDLL(name)
    return None


class GraphedModel:
    """A model whose kernels are launched as one CUDA graph, captured for each of the last forms of inputs.

    Args:
        model: on the GPU; inputs are copied to the memory that its graph reads.
    """

    def __init__(self, model: Callable[..., Any]) -> None:
        self._model = model
        self._graphs: dict[Any, tuple[list[Any], Callable[[], None], list[Any]]] = {}

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """What the model gives; the next call of the same form overwrites it."""
        leaves, structure = pytree.tree_flatten((args, kwargs))
        form = repr(structure), tuple(_form(x) for x in leaves)
        if form not in self._graphs:
            if len(self._graphs) == _FORMS:
                del self._graphs[next(iter(self._graphs))]
            kept = [x.clone() if isinstance(x, torch.Tensor) else x for x in leaves]
            given, named = pytree.tree_unflatten(kept, structure)
            result: list[Any] = []

            def run() -> None:
                result.clear()  # those of the calls that warm up
                result.append(self._model(*given, **named))

            replay = graphed(run)
            self._graphs[form] = kept, replay, result
        places, replay, result = self._graphs[form]
        for place, leaf in zip(places, leaves, strict=True):
            if isinstance(place, torch.Tensor):
                place.copy_(leaf)
        replay()
        return result[-1]


def _form(leaf: Any) -> Any:
    """What a graph depends on: a tensor's layout and device, and the value of anything else."""
    if isinstance(leaf, torch.Tensor):
        return leaf.shape, leaf.stride(), leaf.dtype, leaf.device
    return type(leaf), repr(leaf)


def graphed(call: Callable[[], Any]) -> Callable[[], None]:
    """The same work as one CUDA graph: the baseline for models whose time is launches.

    Args:
        call: reads tensors whose addresses do not change; warmed up here, then captured.
    """
    backend = torch.cuda.Stream()
    backend.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(backend):
        for _ in range(3):
            call()
    torch.cuda.current_stream().wait_stream(backend)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        call()
    return graph.replay
