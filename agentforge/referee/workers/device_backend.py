"""Everything in the referee that depends on the device."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, Protocol, runtime_checkable

from agentforge.config import RefereeSettings
from agentforge.devices import DeviceSpec, Fallback, devices
from agentforge.schema import MachineError

from ..timing.device_lock import device_lock, gpu_lock
from ..timing.gpu.telemetry import Telemetry, first_gpu, visible_gpu
from .runner import CompileMode, Runner

_UNBOUNDED = 1 << 62
"""Address space that a GPU's driver may reserve: more than there is. It wants one range for host memory and
all devices', and fails without it."""
_GPU_FILES = (
    "dev/nvidia*", "dev/nvidia-caps/*", "dev/nvidia-caps-imex-channels/*",  # the last two for MIG and racks
    "sys/module/nvidia*", "sys/devices/system/node", "sys/bus/pci/devices", "sys/devices/pci*",
)  # fmt: skip
"""What NVIDIA's driver opens. From 550.90 on it says that the system blocks the GPU if there is no
`sys/module/nvidia/initstate`."""


@dataclass(frozen=True)
class DeviceBackend:
    """The facts of a device that the referee acts by."""

    device: str
    """Its name for workers: `cpu`, `cuda:0`, `null`."""
    kind: str = "cpu"
    """Its name for languages: what solutions are built for."""
    baselines: Mapping[str, CompileMode] = field(default_factory=lambda: {"compile": "default"})
    """Compiled baselines by name, the cheapest first."""
    on_request: frozenset[str] = frozenset()
    """Baselines that are measured only if the settings name them."""
    of_models: frozenset[str] = frozenset()
    """Baselines of whole models only, unless the settings name them: compiling them takes longest."""
    remote: bool = False
    """Outputs lie in the device's memory, which only the worker can read. The device's clock counts if the
    referee's clock agrees with it."""
    nodes: tuple[Path, ...] = ()
    """Files and folders below /dev and /sys that a worker needs."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Variables of every worker."""
    address_space: int | None = None
    """Bytes that a candidate may map; None bounds it by the size of the task."""
    gpu: int | str | None = None
    """By NVML's number or identifier."""
    device_clock: bool = True
    """The time by a remote device's clock counts."""
    events: bool = True
    """A GPU's clock are CUDA events; if not, its worker's host clock, while a call runs."""
    filtered: bool = True
    """Candidates' system calls are filtered."""
    memory_limited: bool = True
    """The memory of all of a candidate's processes together is limited."""

    @contextmanager
    def lock(
        self,
        cache: Path,
        purpose: Literal["timing", "ncu"] = "timing",
        *,
        until: float | None = None,
        progress: Callable[[str], None] | None = None,
    ) -> Iterator[None]:
        """One timing, or one profiler, at a time on this device, over all processes of the machine; see
        `device_lock`."""
        if self.gpu is None:
            held = device_lock(cache, f"cpu.{purpose}", until=until, progress=progress)
        else:
            held = gpu_lock(cache, Telemetry(self.gpu).uuid(), purpose, until=until, progress=progress)
        with held:
            yield

    def telemetry(self) -> str:
        """Clocks, temperature and throttling in words; empty for a CPU."""
        if self.gpu is None:
            return ""
        return Telemetry(self.gpu).read().describe()

    def room(self) -> str:
        """How much of the device's memory is free, in words; empty for a CPU."""
        found = None if self.gpu is None else Telemetry(self.gpu).memory()
        return f"{found[0] / 2**30:.1f} of {found[1] / 2**30:.1f} GiB of the GPU are free" if found else ""

    def compiled(self, settings: RefereeSettings, *, whole_model: bool = True) -> tuple[list[str], list[str]]:
        """Compiled baselines to measure, and those that the settings name and the device lacks."""
        if not settings.compile_baseline:
            return [], []
        if not settings.baselines:
            left_out = self.on_request if whole_model else self.on_request | self.of_models
            return [name for name in self.baselines if name not in left_out], []
        wanted: tuple[str, ...] = settings.baselines
        lacking = [name for name in wanted if name not in self.baselines]
        return [name for name in self.baselines if name in wanted], lacking


CPU = DeviceBackend(
    "cpu",
    baselines={
        "compile": "default",
        "freezing": "freezing",
        "max-autotune": "max-autotune",
        "max-autotune-freezing": "max-autotune-freezing",
    },
    on_request=frozenset({"max-autotune", "max-autotune-freezing"}),
)
"""Inductor has templates for a CPU's products only if weights are constant, and times each for every shape:
`max-autotune` alone compiles the default code of most models, and with freezing it takes long."""


@runtime_checkable
class MeasuredDevice(Protocol):
    """A plug-in `Device` that the referee can measure on."""

    def backend(self, spec: DeviceSpec) -> DeviceBackend:
        """How to measure; its `device` is `KIND` or `KIND:INDEX`."""
        ...

    def runner(self, device: str) -> Runner:
        """Runs models in a worker; made before untrusted code is imported."""
        ...


def gpu_files(root: Path = Path("/")) -> tuple[Path, ...]:
    """What there is of the files that a GPU's driver opens; what it opens below /proc is in any /proc."""
    found = (path for pattern in _GPU_FILES for path in sorted(root.glob(pattern)))
    return tuple(path for path in found if path.is_char_device() or "dev" not in path.relative_to(root).parts)


def backend_for(device: DeviceSpec) -> DeviceBackend:
    """How to measure on a device.

    Raises:
        MachineError: the referee has no workers for such a device.
    """
    if device.kind in devices.plugins():
        return _of_plugin(device)
    if device.kind == "cpu":
        return CPU
    if device.kind == "null":
        return _without(DeviceBackend("null", remote=True), device)
    if device.kind == "cuda":
        found = DeviceBackend(
            "cuda:0",
            "cuda",
            {"compile": "default", "max-autotune": "max-autotune", "cuda-graph": "graph"},
            of_models=frozenset({"max-autotune"}),
            remote=True,
            nodes=gpu_files(),
            environment=first_gpu(),
            address_space=_UNBOUNDED,
            gpu=visible_gpu(),
        )
        return _without(found, device)
    raise MachineError(f"the referee measures on cpu and cuda; it has no workers for {device.kind}")


def _without(backend: DeviceBackend, device: DeviceSpec) -> DeviceBackend:
    """A backend that does without what the device cannot do."""
    lost = set(device.fallbacks)
    graphs = Fallback.NO_GRAPHS not in lost
    return replace(
        backend,
        baselines={name: mode for name, mode in backend.baselines.items() if graphs or mode != "graph"},
        events=Fallback.HOST_CLOCK not in lost,
        filtered=Fallback.NO_FILTER not in lost,
        memory_limited=Fallback.NO_MEMORY_LIMIT not in lost,
    )


def _of_plugin(device: DeviceSpec) -> DeviceBackend:
    found = devices.create(device.kind)
    if isinstance(found, MeasuredDevice):
        return found.backend(device)
    raise MachineError(
        f"the referee cannot measure on {device.kind}: "
        "its plug-in must implement agentforge.referee.MeasuredDevice"
    )
