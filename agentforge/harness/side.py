"""What measuring on another device than the CPU changes; all the rest of the referee is the same."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from agentforge.devices import DeviceSpec
from agentforge.schema import MachineError

from .gpu.telemetry import Telemetry, visible_gpu
from .lock import device_lock, gpu_lock
from .runner import CompileMode

_UNBOUNDED = 1 << 46
"""Address space that a GPU's driver may reserve: host memory and all devices' in one."""


@dataclass(frozen=True)
class DeviceSide:
    """The facts of a device that the referee acts by."""

    device: str
    """As workers are told it: `cpu`, `cuda:0`, `null`."""
    kind: str = "cpu"
    """As languages are told it: what solutions are built for."""
    baselines: Mapping[str, CompileMode] = field(default_factory=lambda: {"compile": "default"})
    """Compiled baselines by name."""
    remote: bool = False
    """Outputs lie in the device's memory, where only the worker can read them, and the device's clock counts
    where the referee's agrees with it."""
    nodes: tuple[Path, ...] = ()
    """Files below /dev that a worker needs."""
    address_space: int | None = None
    """Bytes that a candidate may map; None bounds it by the size of the task."""
    gpu: int | str | None = None
    """By NVML's number or identifier."""

    @contextmanager
    def lock(self, cache: Path, purpose: Literal["timing", "ncu"] = "timing") -> Iterator[None]:
        """One timing, or one profiler, at a time on this device, over all processes with the same cache."""
        if self.gpu is None:
            with device_lock(cache, purpose):
                yield
        else:
            with gpu_lock(cache, Telemetry(self.gpu).uuid(), purpose):
                yield

    def telemetry(self) -> str:
        """Clocks, temperature and what holds the device back, in words; empty for a CPU."""
        if self.gpu is None:
            return ""
        return Telemetry(self.gpu).read().describe()


CPU = DeviceSide("cpu")


def side_of(device: DeviceSpec) -> DeviceSide:
    """How to measure on a device.

    Raises:
        MachineError: the referee has no workers for such a device.
    """
    if device.kind == "cpu":
        return CPU
    if device.kind == "null":
        return DeviceSide("null", remote=True)
    if device.kind == "cuda":
        return DeviceSide(
            "cuda:0",
            "cuda",
            {"compile": "default", "max-autotune": "max-autotune", "cuda-graph": "graph"},
            remote=True,
            nodes=tuple(p for p in sorted(Path("/dev").glob("nvidia*")) if p.is_char_device()),
            address_space=_UNBOUNDED,
            gpu=visible_gpu(),
        )
    raise MachineError(f"the referee measures on cpu and cuda; it has no workers for {device.kind}")
