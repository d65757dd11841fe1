"""Run independent steps of a stitched forward on several GPU streams."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

import torch
from torch.utils import _pytree

STREAMS = "streams"
"""Counter name of forwards on several streams."""


class Branched:
    """A forward with the statements that its generated code runs between its steps.

    Only events order the streams. The host never waits, so a CUDA graph of the forward can be recorded; the
    streams become its branches.

    Args:
        streams: number of streams, the caller's included.
    """

    def __init__(self, streams: int, events: int, counts: ModuleType) -> None:
        self._streams = streams
        self._events = events
        self._counts = counts
        # If another thread records a graph, work on its streams would end up in that graph.
        self._local = threading.local()
        self.forward: Callable[..., Any] = _absent
        """The generated code; set after it was loaded with these statements. Alone it uses one stream."""

    @property
    def statements(self) -> Mapping[str, Callable[..., None]]:
        """Functions that the generated code calls, by name."""
        return {"_on_stream": self._on_stream, "_mark": self._mark}

    def __call__(self, *tensors: torch.Tensor) -> Any:
        """Return the forward's results, ready on the caller's stream."""
        device = next((tensor.device for tensor in tensors if tensor.is_cuda), None)
        if device is None:
            return self.forward(*tensors)
        here = torch.cuda.current_stream(device)
        run = self._local.run = self._at(device, here)
        with torch.cuda.stream(here):  # restores the current stream and GPU at the end
            try:
                results = self.forward(*tensors)
            except BaseException:
                if not torch.cuda.is_current_stream_capturing():
                    for stream in run.streams[1:]:
                        here.wait_stream(stream)
                raise
            finally:
                self._local.run = None
        self._counts.count(STREAMS)
        return results

    def _at(self, device: torch.device, here: Any) -> _Run:
        known: dict[torch.device, _Run] = self._local.__dict__.setdefault("known", {})
        if device not in known:
            side = [torch.cuda.Stream(device) for _ in range(self._streams - 1)]
            known[device] = _Run([here, *side], [torch.cuda.Event() for _ in range(self._events)])
        known[device].streams[0] = known[device].current = here
        return known[device]

    def _on_stream(self, stream: int, events: list[int], *made_elsewhere: Any) -> None:
        """Switch to a stream after its events; it may read tensors made on other streams."""
        run: _Run | None = getattr(self._local, "run", None)
        if run is None:
            return
        run.current = run.streams[stream]
        torch.cuda.set_stream(run.current)
        for event in events:
            run.current.wait_event(run.events[event])
        for made in made_elsewhere:
            for tensor in [made] if isinstance(made, torch.Tensor) else _pytree.tree_leaves(made):
                if isinstance(tensor, torch.Tensor) and tensor.is_cuda:
                    tensor.record_stream(run.current)

    def _mark(self, event: int) -> None:
        """Record the event after everything before it on the current stream."""
        run: _Run | None = getattr(self._local, "run", None)
        if run is not None:
            run.events[event].record(run.current)


class _Run:
    """Streams and events of one thread on one GPU, and the forward's position."""

    def __init__(self, streams: list[Any], events: list[Any]) -> None:
        self.streams = streams
        self.events = events
        self.current = streams[0]


def nothing(*_: Any) -> None:
    """Replaces the statements in a compiled forward, which uses one stream."""


def _absent(*_: Any) -> Any:
    raise RuntimeError("no forward was loaded")
