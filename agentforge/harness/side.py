"""What measuring on another device than the CPU changes; all the rest of the referee is the same."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from agentforge.devices import DeviceSpec
from agentforge.schema import MachineError

from .gpu.telemetry import Telemetry, first_gpu, visible_gpu
from .lock import device_lock, gpu_lock
from .runner import CompileMode

_UNBOUNDED = 1 << 62
"""Address space that a GPU's driver may reserve: more than there is. It wants one range for host memory and
all devices', and fails where it cannot have it."""
_GPU_FILES = (
    "dev/nvidia*", "dev/nvidia-caps/*", "dev/nvidia-caps-imex-channels/*",  # the last two for MIG and racks
    "sys/module/nvidia*", "sys/devices/system/node", "sys/bus/pci/devices", "sys/devices/pci*",
)  # fmt: skip
"""What NVIDIA's driver opens. From 550.90 on it says that the system blocks the GPU where there is no
`sys/module/nvidia/initstate`."""


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
    """Files and folders below /dev and /sys that a worker needs."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Variables of every worker."""
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


def gpu_files(root: Path = Path("/")) -> tuple[Path, ...]:
    """What there is of the files that a GPU's driver opens; what it opens below /proc is in any /proc."""
    found = (path for pattern in _GPU_FILES for path in sorted(root.glob(pattern)))
    return tuple(path for path in found if path.is_char_device() or "dev" not in path.relative_to(root).parts)


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
            nodes=gpu_files(),
            environment=first_gpu(),
            address_space=_UNBOUNDED,
            gpu=visible_gpu(),
        )
    raise MachineError(f"the referee measures on cpu and cuda; it has no workers for {device.kind}")
