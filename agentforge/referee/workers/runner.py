"""Runs a worker's model in the worker's own memory, or on a device that inputs are copied to.

A runner is made before untrusted code is imported, and keeps the functions that it found then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import torch

from agentforge.devices import devices

from ..timing.gpu.device import Gpu, HostClock, TorchGpu
from ..timing.gpu.events import credible, empty_call
from .failures import UnusableOutput
from .memory.shared_memory import ALIGNMENT, Layout, dtype_name
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

    def release(self) -> None:
        """Give back what the device has reserved and no tensor uses."""
        ...

    def usable(self) -> bool:
        """Whether the model can be called again: some faults end a process's use of a device."""
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

    def release(self) -> None:
        """See `Runner.release`."""

    def usable(self) -> bool:
        """See `Runner.usable`."""
        return True


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
        """See `Runner.bring`: a copy, also of nested tensors, with the strides that they have, as far from an
        aligned address, and as lazily conjugated or negated."""
        if isinstance(value, torch.Tensor):
            return self._copied(value)
        if isinstance(value, (list, tuple)):
            return type(value)(self.bring(item) for item in value)
        if isinstance(value, dict):
            return {key: self.bring(item) for key, item in value.items()}
        return value

    def _copied(self, value: torch.Tensor) -> torch.Tensor:
        if value.is_conj():
            return self._copied(value.conj()).conj()
        if value.is_neg():
            return torch._neg_view(self._copied(torch._neg_view(value)))
        strides, first = value.stride(), value.data_ptr() % ALIGNMENT // value.element_size()
        if not first:
            there = torch.empty_strided(value.shape, strides, dtype=value.dtype, device=self._device)
            return there.copy_(value)
        layout = Layout(tuple(value.shape), dtype_name(value.dtype), strides)
        memory = torch.empty(first + layout.nbytes // layout.itemsize, dtype=value.dtype, device=self._device)
        return memory.as_strided(value.shape, strides, first).copy_(value)

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

    def release(self) -> None:
        """See `Runner.release`."""
        self._gpu.release()

    def usable(self) -> bool:
        """See `Runner.usable`."""
        return self._gpu.usable()


def runner_for(device: str, *, events: bool = True) -> Runner:
    """The runner of a device.

    Args:
        device: `cpu`, `cuda:0`, or `null`, which computes on the CPU and otherwise takes the path of a GPU.
        events: see `DeviceBackend.events`.
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
    return DeviceRunner(where, TorchGpu(where.index or 0, events=events))


@dataclass(frozen=True)
class Way:
    """How a backward pass is run."""

    arrives: Literal["dense", "expanded", "transposed"] = "dense"
    """How the gradients of outputs lie: one row for all, as a sum gives, or with strides in reverse order, as
    the product of a transposed output gives."""
    twice: bool = False
    """What counts is a second pass through the same answer."""
    frozen: bool = False
    """Parameters require no gradient."""


def gradients(
    model: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    seed: int,
    way: Way,
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

    args = tuple(prepared(f"input {n}", a) for n, a in enumerate(args))
    kwargs = {k: prepared(f"input {k}", v) for k, v in kwargs.items()}
    with torch.enable_grad(), _parameters(model, way) as parameters:
        wanted |= {f"the gradient of {name}": p for name, p in parameters.items()}
        given = [x for x in flatten(model(*args, **kwargs)) if isinstance(x.value, torch.Tensor)]
        tensors = {x.path: x.value for x in given if x.value.is_floating_point() and x.value.requires_grad}
        if not tensors:
            raise UnusableOutput("its outputs have no gradient; compute them with operators that have one")
        if between is not None:
            between()
        generator = torch.Generator().manual_seed(seed)
        arriving = {
            f"the gradient of {path}": _arriving(t, generator, way.arrives) for path, t in tensors.items()
        }
        lent |= {x.path: x.value for x in given} | arriving
        before = {path: t.detach().clone() for path, t in lent.items()}
        for more in (True, False) if way.twice else (False,):
            found = torch.autograd.grad(
                list(tensors.values()),
                list(wanted.values()),
                list(arriving.values()),
                retain_graph=more,
                allow_unused=True,
            )
    leaves = [
        Leaf(path, torch.zeros_like(t) if g is None else g.detach())
        for (path, t), g in zip(wanted.items(), found, strict=True)
    ]
    return leaves, [path for path, t in lent.items() if not same_bytes(before[path], t.detach())]


@contextmanager
def _parameters(model: Callable[..., Any], way: Way) -> Iterator[dict[str, torch.Tensor]]:
    """The parameters that require a gradient, by name; none while they are frozen."""
    own = dict(model.named_parameters()) if isinstance(model, torch.nn.Module) else {}
    trained = {name: p for name, p in own.items() if p.requires_grad}
    if not way.frozen:
        yield trained
        return
    try:
        for parameter in trained.values():
            parameter.requires_grad_(False)
        yield {}
    finally:
        for parameter in trained.values():
            parameter.requires_grad_()


def _arriving(output: torch.Tensor, generator: torch.Generator, how: str) -> torch.Tensor:
    """A gradient of an output, normally distributed."""
    shape = output.shape
    if how == "expanded":
        shape = shape[-1:] if len(shape) > 1 else torch.Size()
    drawn = torch.randn(shape, generator=generator, dtype=torch.float32).to(output)
    if how == "expanded":
        return drawn.expand(output.shape)
    if how == "transposed" and drawn.dim() > 1:
        turned = tuple(reversed(range(drawn.dim())))
        return drawn.permute(turned).contiguous().permute(turned)
    return torch.stack([drawn, drawn], -1)[..., 0] if how == "transposed" else drawn
