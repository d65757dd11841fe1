"""What a device is: the facts that rooflines, contexts and reports rest on."""

from __future__ import annotations

from contextlib import suppress

from agentforge.registry import Registry
from agentforge.schema import FrozenModel, UsageError

from .toolchain import gpu_present


class DeviceSpec(FrozenModel):
    """Hardware and toolchain of one device."""

    kind: str
    """`cpu`, `cuda`, `null`."""
    name: str
    """`AMD EPYC 9B14`."""
    architecture: str
    """`x86-64 avx512`, `sm_90`."""
    threads: int = 1
    """Threads that this process may use (affinity and cgroup), or multiprocessors."""
    memory_bytes: int = 0
    """Memory that this process may use at most (cgroup), or the GPU's."""
    cache_bytes: tuple[int, ...] = ()
    """Data caches a core sees, L1 first."""
    toolchain: dict[str, str] = {}
    """Versions: python, torch, g++, nvcc, ..."""


class Roofline(FrozenModel):
    """Measured ceilings of a device (Williams et al., Roofline, CACM 2009)."""

    bandwidth: float
    """Bytes/s, read and written, of the best streaming kernel beyond the last cache."""
    peak_flops: dict[str, float]
    """FLOP/s by dtype: of multiply-adds in registers on a CPU, of the best GEMM elsewhere."""
    cache_bandwidth: float = 0.0
    """Bytes/s inside the last-level cache, 0 where not measured."""
    call_overhead_s: float = 0.0
    """Seconds of an empty operator call."""


devices: Registry[DeviceSpec] = Registry(
    "devices",
    {
        "cpu": "agentforge.devices.cpu:detect_cpu",
        "cuda": "agentforge.devices.cuda:detect_cuda",
        "null": "agentforge.devices.null:detect_null",
    },
)
"""All kinds of device; each factory returns the spec of the one that is here."""


def detect(kind: str = "auto") -> DeviceSpec:
    """What the device is.

    Args:
        kind: `cpu`, `cuda`, `null` (for tests), a plug-in's name, or `auto`: the GPU where torch can use
            one, else the CPU.

    Raises:
        UsageError: no such kind, or the device is not there; the message says what to do.
    """
    if kind != "auto":
        return devices.create(kind)
    if gpu_present():
        with suppress(UsageError):  # a driver without a torch that can use it
            return devices.create("cuda")
    return devices.create("cpu")
