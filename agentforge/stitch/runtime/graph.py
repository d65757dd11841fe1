"""Run a stitched forward as one CUDA graph."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

import torch
from torch.utils import _pytree

from .kernel import Kernel

REPLAY = "cuda graph"
"""Counter name of replays."""

_MOST = 4
"""Recordings of one forward: deep copies of a model have one each, and each keeps memory on the GPU."""


class Replayed:
    """A forward whose launches are recorded once and then replayed as a CUDA graph, for each set of weights.

    The second call records without running: a forward that writes to buffers does so once per call.

    Args:
        forward: takes tensors on one GPU, and writes at most to the first `still` of them. If it has an
            attribute `forward`, that is the same on one stream.
        still: number of leading arguments that keep their address: weights and constants.
    """

    def __init__(
        self, forward: Callable[..., Any], still: int, kernels: Sequence[Kernel], counts: ModuleType
    ) -> None:
        self._forward = forward
        self._still = still
        self._kernels = kernels
        self._counts = counts
        self._lock = threading.Lock()
        self._recordings: dict[tuple[Any, ...], _Recording | None] = {}
        """By the GPU and the addresses of the leading arguments, oldest use first; None after one call."""
        self._streams: dict[torch.device, Any] = {}
        """One of each GPU."""
        self._impossible = False

    def __call__(self, *tensors: torch.Tensor) -> Any:
        """Return the forward's results in new tensors."""
        # Without CUDA, torch cannot be asked whether a capture is running.
        on_gpu = bool(tensors) and tensors[0].is_cuda
        if self._impossible or not on_gpu or torch.cuda.is_current_stream_capturing():
            return self._forward(*tensors)
        with self._lock:
            places = (tensors[0].device, *(tensor.data_ptr() for tensor in tensors[: self._still]))
            if places not in self._recordings:
                if not all(tensor.is_cuda for tensor in tensors):  # a graph would freeze a CPU scalar's value
                    return self._forward(*tensors)
                if len(self._recordings) == _MOST:
                    del self._recordings[next(iter(self._recordings))]
                self._recordings[places] = None
                return self._first(tensors)
            recording = self._recordings.pop(places)
            if recording is not None:
                recording.count(self._kernels, self._counts)
            elif (recording := self._record(tensors)) is None:
                return self._forward(*tensors)
            self._recordings[places] = recording
            self._counts.count(REPLAY)
            return recording.replay(tensors[self._still :])

    def _first(self, tensors: Sequence[torch.Tensor]) -> Any:
        device = tensors[0].device
        here = torch.cuda.current_stream(device)
        stream = self._streams.get(device)
        if stream is None:
            stream = self._streams[device] = torch.cuda.Stream(device)
        stream.wait_stream(here)
        with torch.cuda.stream(stream):
            results = self._forward(*tensors)
        here.wait_stream(stream)
        for result in _pytree.tree_leaves(results):
            if isinstance(result, torch.Tensor):
                result.record_stream(here)
        return results

    def _record(self, tensors: Sequence[torch.Tensor]) -> _Recording | None:
        before = self._counts.calls()
        try:
            stream = self._streams[tensors[0].device]
            recording = _Recording(self._forward, self._still, tensors, stream)
        except RuntimeError as error:  # for example an operator that waits for the GPU
            self._impossible = True
            # After it, torch up to 2.12 frees no memory that several streams used (pytorch issue 180395).
            self._forward = getattr(self._forward, "forward", self._forward)
            reason = str(error).strip().partition("\n")[0]
            warnings.warn(
                f"no CUDA graph can be recorded, so kernels are launched one by one: {reason}", stacklevel=4
            )
            return None
        after = self._counts.calls()
        recording.ran = {name: n - before.get(name, 0) for name, n in after.items()}
        return recording


class _Recording:
    """One CUDA graph with its input and output tensors."""

    def __init__(
        self, forward: Callable[..., Any], still: int, tensors: Sequence[torch.Tensor], stream: Any
    ) -> None:
        with torch.inference_mode(False):  # otherwise only inference_mode could write to them
            self._inputs = [_place(tensor) for tensor in tensors[still:]]
        self._stream = stream
        self._graph = torch.cuda.CUDAGraph()
        self._graph.agentforge_counted = True  # `count` counts its kernels; a referee's worker need not
        with torch.cuda.graph(self._graph, stream=stream, capture_error_mode="thread_local"):
            results = forward(*tensors[:still], *self._inputs)
        self._results, self._structure = _pytree.tree_flatten(results)
        self._last = stream
        """The stream of the last replay."""
        self.ran: dict[str, int] = {}
        """Runs of each kernel and function in one replay."""

    def replay(self, inputs: Sequence[torch.Tensor]) -> Any:
        here = torch.cuda.current_stream(self._stream.device)
        if here != self._last:  # else the stream's order is enough
            here.wait_stream(self._last)
            self._last = here
        for place, value in zip(self._inputs, inputs, strict=True):
            place.copy_(value)
        self._graph.replay()
        results = [r.clone() if isinstance(r, torch.Tensor) else r for r in self._results]
        return _pytree.tree_unflatten(results, self._structure)

    def count(self, kernels: Sequence[Kernel], counts: ModuleType) -> None:
        for name, times in self.ran.items():
            counts.count(name, times)
        for kernel in kernels:
            kernel.runs += self.ran.get(kernel.name, 0)


def _place(tensor: torch.Tensor) -> torch.Tensor:
    place = torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device=tensor.device)
    return place.copy_(tensor)
