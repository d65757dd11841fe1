"""Runs a worker's model in the worker's own memory, or on a device that inputs are copied to.

A runner is made before untrusted code is imported, and keeps the functions that it found then.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, Protocol

import torch

from agentforge.devices import devices

from ..timing.gpu.device import Gpu, HostClock, TorchGpu
from ..timing.gpu.events import credible, empty_call
from .failures import UnusableOutput
from .pytree import Leaf, flatten, same_bytes

CompileMode = Literal["", "default", "freezing", "max-autotune", "max-autotune-freezing", "graph"]
"""How a baseline runs the reference: as it is, by torch.compile, as one CUDA graph. `freezing` is Inductor's:
weights are constants, and those of products are packed."""
CHEAP: tuple[CompileMode, ...] = ("default", "graph")
"""Modes that level `quick` waits for."""


class Runner(Protocol):
    """The operations of a worker that depend on the device."""

    def place(self, model: Any) -> Any:
        """The model, moved to its device."""
        ...

    def bring(self, value: Any) -> Any:
        """An argument in memory that the model can read."""
        ...

    def run(
        self, model: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> tuple[Any, int]:
        """Call the model.

        Returns:
            What it gives, and the nanoseconds by the device's clock; 0 if it has none.
        """
        ...


class HostRunner:
    """The CPU: nothing is moved."""

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
    """A device with memory and a clock of its own."""

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
        device: `cpu`, `cuda:0`, or `null`, which computes on the CPU and otherwise takes the path of a GPU.
    """
    if device == "cpu":
        return HostRunner()
    if device == "null":
        return DeviceRunner(torch.device("cpu"), HostClock())
    kind = device.partition(":")[0]
    if kind in devices.plugins():
        runner: Runner = devices.create(kind).runner(device)  # type: ignore[attr-defined]  # a MeasuredDevice
        return runner
    where = torch.device(device)
    torch.cuda.set_device(where)
    # Torch 2.11 counts GPUs by NVML. A sandboxed worker on an H100 counted none, perhaps because its
    # forkserver had used NVML before.
    torch.cuda._cached_device_count = torch._C._cuda_getDeviceCount()
    return DeviceRunner(where, TorchGpu(where.index or 0))


def gradients(
    model: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    seed: int,
    between: Callable[[], object] | None = None,
) -> tuple[list[Leaf], list[str]]:
    """What a backward pass leaves in inputs and parameters, and what it writes to that is its caller's.

    Args:
        seed: of the normally distributed gradients of the outputs; the same in every process.
        between: runs between the forward and the backward pass.

    Returns:
        One leaf for each input and parameter that requires a gradient, zeros if none arrives. And names of
        inputs, outputs and gradients of outputs that have other bits than before the backward pass.

    Raises:
        UnusableOutput: no output depends on them by autograd.
    """
    wanted: dict[str, torch.Tensor] = {}
    lent: dict[str, torch.Tensor] = {}

    def prepared(path: str, value: Any) -> Any:
        if isinstance(value, torch.Tensor) and value.is_floating_point():
            value = value.detach().clone().requires_grad_()
            wanted[f"the gradient of {path}"] = value
        elif isinstance(value, torch.Tensor):
            value = value.clone()
        if isinstance(value, torch.Tensor):
            lent[path] = value
        return value

    with torch.enable_grad():
        args = tuple(prepared(f"input {n}", a) for n, a in enumerate(args))
        kwargs = {k: prepared(f"input {k}", v) for k, v in kwargs.items()}
        if isinstance(model, torch.nn.Module):
            for name, parameter in model.named_parameters():
                if parameter.requires_grad:
                    wanted[f"the gradient of {name}"] = parameter
        given = [x for x in flatten(model(*args, **kwargs)) if isinstance(x.value, torch.Tensor)]
        tensors = {x.path: x.value for x in given if x.value.is_floating_point() and x.value.requires_grad}
        if not tensors:
            raise UnusableOutput("its outputs have no gradient; compute them with operators that have one")
        if between is not None:
            between()
        generator = torch.Generator().manual_seed(seed)
        arriving = {
            f"the gradient of {path}": torch.randn(t.shape, generator=generator, dtype=torch.float32).to(t)
            for path, t in tensors.items()
        }
        lent |= {x.path: x.value for x in given} | arriving
        before = {path: t.detach().clone() for path, t in lent.items()}
        found = torch.autograd.grad(
            list(tensors.values()), list(wanted.values()), list(arriving.values()), allow_unused=True
        )
    leaves = [
        Leaf(path, torch.zeros_like(t) if g is None else g.detach())
        for (path, t), g in zip(wanted.items(), found, strict=True)
    ]
    return leaves, [path for path, t in lent.items() if not same_bytes(before[path], t.detach())]
