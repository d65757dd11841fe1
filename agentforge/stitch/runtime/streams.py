"""A stitched forward whose independent steps run on several streams of a GPU."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

import torch
from torch.utils import _pytree

STREAMS = "streams"
"""What forwards on several streams are counted as."""


class Branched:
    """A forward with the statements that its generated code runs between its steps.

    Nothing but events orders the streams: the host never waits, so a CUDA graph can be recorded of it, in
    which the streams are branches. The first statements let each stream wait for the caller's, the last ones
    the caller's for each. Where the tensors lie on no GPU, the statements do nothing.

    Args:
        streams: how many, the caller's among them.
        events: how many.
        counts: the module that counts all kernels' calls.
    """

    def __init__(self, streams: int, events: int, counts: ModuleType) -> None:
        self._streams = streams
        self._events = events
        self._counts = counts
        # Another thread may record a graph: what runs on its streams meanwhile would end up in there.
        self._local = threading.local()
        self.forward: Callable[..., Any] = _absent
        """The generated code; it is given when it was loaded with these statements."""

    @property
    def statements(self) -> Mapping[str, Callable[..., None]]:
        """What the generated code calls, by name."""
        return {"_on_stream": self._on_stream, "_mark": self._mark}

    def __call__(self, *tensors: torch.Tensor) -> Any:
        """The forward's results, ready on the caller's stream."""
        device = next((tensor.device for tensor in tensors if tensor.is_cuda), None)
        if device is None:
            return self.forward(*tensors)
        here = torch.cuda.current_stream(device)
        run = self._local.run = self._at(device, here)
        with torch.cuda.stream(here):  # at its end, that stream is the current one again, and so is its GPU
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
        """What follows runs on a stream, once the events came; tensors of other streams are read there."""
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
        """The event comes when everything before it on the current stream is done."""
        run: _Run | None = getattr(self._local, "run", None)
        if run is not None:
            run.events[event].record(run.current)


class _Run:
    """Streams and events of one thread on one GPU, and where the forward is."""

    def __init__(self, streams: list[Any], events: list[Any]) -> None:
        self.streams = streams
        self.events = events
        self.current = streams[0]


def nothing(*_: Any) -> None:
    """Stands for the statements where the forward is compiled, which runs on one stream."""


def _absent(*_: Any) -> Any:
    raise RuntimeError("no forward was loaded")
