"""Where a worker's model runs: in the worker's own memory, or on a device that inputs are copied to.

A runner is made before untrusted code is imported, and keeps the functions that it found then.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, Protocol

import torch

from .gpu.compare import credible, empty_call
from .gpu.device import Gpu, HostClock, TorchGpu

CompileMode = Literal["", "default", "max-autotune", "graph"]
"""How a baseline runs the reference: as it is, by torch.compile, as one CUDA graph."""


class Runner(Protocol):
    """What a worker does otherwise for another device."""

    def place(self, model: Any) -> Any:
        """The model where it will run."""
        ...

    def bring(self, value: Any) -> Any:
        """An argument where the model can read it."""
        ...

    def run(
        self, model: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> tuple[Any, int]:
        """Call the model.

        Returns:
            What it gives, and the nanoseconds by the device's clock; 0 where it has none.
        """
        ...


class HostRunner:
    """The CPU: everything is where it is."""

    def place(self, model: Any) -> Any:
        """See `Runner.place`."""
        return model

    def bring(self, value: Any) -> Any:
        """See `Runner.bring`."""
        return value

    def run(
        self, model: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> tuple[Any, int]:
        """See `Runner.run`."""
        return model(*args, **kwargs), 0


class DeviceRunner:
    """A device with memory and a clock of its own.

    Args:
        device: where tensors go.
        gpu: times calls on it.
    """

    def __init__(self, device: torch.device, gpu: Gpu) -> None:
        self._device = device
        self._gpu = gpu
        self._empty = empty_call(gpu)

    def place(self, model: Any) -> Any:
        """See `Runner.place`."""
        return model.to(self._device) if isinstance(model, torch.nn.Module) else model

    def bring(self, value: Any) -> Any:
        """See `Runner.bring`: a copy, also of nested tensors, with the strides that they have."""
        if isinstance(value, torch.Tensor):
            there = torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device=self._device)
            return there.copy_(value)
        if isinstance(value, (list, tuple)):
            return type(value)(self.bring(item) for item in value)
        if isinstance(value, dict):
            return {key: self.bring(item) for key, item in value.items()}
        return value

    def run(
        self, model: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> tuple[Any, int]:
        """See `Runner.run`: with cold caches, until every stream is idle.

        Work that runs beside the events is added to them; see `credible`.
        """
        given: list[Any] = []
        self._gpu.prepare()
        found = self._gpu.time(lambda: given.append(model(*args, **kwargs)))
        seconds, _ = credible(found, self._empty)
        return given[0], max(1, round(seconds * 1e9))


def runner_for(device: str) -> Runner:
    """The runner of a device.

    Args:
        device: `cpu`; `cuda:0`; or `null`, a device that is none: it computes on the CPU, and everything else
            goes the way of a GPU.
    """
    if device == "cpu":
        return HostRunner()
    if device == "null":
        return DeviceRunner(torch.device("cpu"), HostClock())
    where = torch.device(device)
    torch.cuda.set_device(where)
    return DeviceRunner(where, TorchGpu(where.index or 0))
