"""Specification of a device: the facts for rooflines, contexts and reports."""

from __future__ import annotations

from contextlib import suppress
from typing import Protocol

from agentforge.registry import Registry
from agentforge.schema import FrozenModel, UsageError

from .toolchain import gpu_present


class DeviceSpec(FrozenModel):
    """Hardware and toolchain of one device."""

    kind: str
    """`cpu`, `cuda`, `null`."""
    torch_type: str = ""
    """Type of `torch.device` that its models run on; empty if it is the kind."""
    name: str
    """`AMD EPYC 9B14`."""
    architecture: str
    """`x86-64 avx512`, `sm_90`."""
    threads: int = 1
    """Threads that this process may use (affinity and cgroup), or a GPU's multiprocessors."""
    memory_bytes: int = 0
    """Memory that this process may use (cgroup), or the GPU's."""
    cache_bytes: tuple[int, ...] = ()
    """Data caches, L1 first: those of a core, and all last ones together that its threads can use."""
    toolchain: dict[str, str] = {}
    """Versions: python, torch, g++, nvcc, ..."""
    fallbacks: tuple[str, ...] = ()
    """What AgentForge does without on it: values of `Fallback`."""

    @property
    def torch_device(self) -> str:
        """Type of `torch.device` that models are loaded on."""
        return self.torch_type or self.kind


class Roofline(FrozenModel):
    """Measured ceilings of a device (Williams et al., Roofline, CACM 2009)."""

    bandwidth: float
    """Bytes/s, read and written, of the best streaming kernel beyond the last cache."""
    peak_flops: dict[str, float]
    """FLOP/s by dtype: of multiply-adds in registers on a CPU, of the best GEMM elsewhere."""
    cache_bandwidth: float = 0.0
    """Bytes/s inside the last-level cache; 0 if not measured."""
    call_overhead_s: float = 0.0
    """Seconds per call of an empty operator."""


class Device(Protocol):
    """A kind of device. Stateless and thread-safe.

    A plug-in must also implement `agentforge.referee.MeasuredDevice`, or the referee cannot measure on it.
    """

    kind: str
    """As registered."""
    language: str
    """Language of kernels for it, unless the user names one."""

    def detect(self) -> DeviceSpec:
        """The device of this kind that is here.

        Raises:
            UsageError: there is none.
        """
        ...

    def roofline(self, spec: DeviceSpec) -> Roofline | None:
        """Its ceilings if they are known without measuring; None measures them with torch."""
        ...


devices: Registry[Device] = Registry(
    "devices",
    {
        "cpu": "agentforge.devices.cpu:Cpu",
        "cuda": "agentforge.devices.cuda:Cuda",
        "null": "agentforge.devices.null:Null",
    },
)
"""All kinds of device."""


def detect(kind: str = "auto") -> DeviceSpec:
    """Detect a device of this machine.

    Args:
        kind: `cpu`, `cuda`, `null` (for tests), a plug-in's name, or `auto` (the GPU if torch can use one).

    Raises:
        UsageError: unknown kind, or this machine lacks the device.
    """
    if kind not in ("auto", *devices.names()):
        known = ["auto", *(name for name in devices.names() if name != "null")]
        raise UsageError(f"{kind!r} is not one of the devices: {', '.join(known)}")
    if kind != "auto":
        return devices.create(kind).detect()
    if gpu_present():
        with suppress(UsageError):  # there may be a driver but no torch that can use it
            return devices.create("cuda").detect()
    return devices.create("cpu").detect()
