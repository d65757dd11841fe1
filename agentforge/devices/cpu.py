"""The CPU."""

from __future__ import annotations

import os
import platform
from collections.abc import Collection
from pathlib import Path

import psutil

from agentforge.limits import allowed_memory, allowed_threads

from ._base import DeviceSpec, Roofline
from .toolchain import toolchain

_VECTOR_UNITS = (
    ("avx512f", "avx512", 512),
    ("avx2", "avx2", 256),
    ("avx", "avx", 256),
    ("sse2", "sse2", 128),
    ("sve2", "sve2", 0),
    ("sve", "sve", 0),
    ("asimd", "neon", 128),
)
"""Feature word, readable name and bits of a register (0: the name does not say), widest vector unit first."""
_UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def architecture(machine: str, flags: str) -> str:
    """`x86-64 avx512`, `x86-64 avx2`, `aarch64 sve`, ...: named after the widest vector unit."""
    present = set(flags.split())
    name = "x86-64" if machine in ("x86_64", "AMD64") else machine
    return next((f"{name} {unit}" for flag, unit, _ in _VECTOR_UNITS if flag in present), name)


def vector_bits(architecture: str) -> int:
    """Bits of a vector register by the name that `architecture` gives; 0 if it does not say."""
    return next((bits for _, unit, bits in _VECTOR_UNITS if architecture.endswith(f" {unit}")), 0)


def cores(threads: int) -> int:
    """Physical cores that `threads` threads can run on; 0 if the system does not say."""
    return min(threads, psutil.cpu_count(logical=False) or 0)


def data_caches(root: Path, cpus: Collection[int], threads: int) -> tuple[int, ...]:
    """Bytes of the data caches, L1 first: those of a core, and all last ones together that threads can use.

    Args:
        root: such as `/sys/devices/system/cpu`.
        cpus: CPUs that the threads may run on.
    """
    sizes = cache_sizes(root / "cpu0" / "cache")
    if not sizes:
        return ()
    return (*sizes[:-1], sizes[-1] * min(last_level_caches(root, cpus), max(threads, 1)))


def last_level_caches(root: Path, cpus: Collection[int]) -> int:
    """Number of last-level caches that some CPUs have together, at least 1. An EPYC has one for 8 cores."""
    found = set()
    for cpu in cpus:
        if caches := _caches(root / f"cpu{cpu}" / "cache"):
            level = max(caches)
            found.add((level, caches[level][1]))
    last = max((level for level, _ in found), default=0)
    return max(1, sum(level == last for level, _ in found))


def cache_sizes(folder: Path) -> tuple[int, ...]:
    """Bytes of the data and unified caches described in a `/sys` folder, L1 first."""
    caches = _caches(folder)
    return tuple(caches[level][0] for level in sorted(caches))


def _caches(folder: Path) -> dict[int, tuple[int, str]]:
    """Bytes of the data and unified caches in a `/sys` folder, and the CPUs that share them, by level."""
    found: dict[int, tuple[int, str]] = {}
    for index in sorted(folder.glob("index*")):
        try:
            kind = (index / "type").read_text().strip()
            level = int((index / "level").read_text())
            text = (index / "size").read_text().strip()
        except (OSError, ValueError):
            continue
        if kind != "Instruction" and text:
            unit = _UNITS.get(text[-1])
            shared = index / "shared_cpu_list"
            cpus = shared.read_text().strip() if shared.is_file() else ""
            found[level] = (int(text[:-1]) * unit if unit else int(text), cpus)
    return found


def _cpuinfo(path: Path) -> dict[str, str]:
    """Lines of the first processor in `/proc/cpuinfo`."""
    try:
        block = path.read_text().split("\n\n")[0]
    except OSError:
        return {}
    pairs = (line.partition(":") for line in block.splitlines())
    return {key.strip(): value.strip() for key, _, value in pairs}


def with_threads(spec: DeviceSpec, threads: int) -> DeviceSpec:
    """The device for measurements with `threads` threads: a CPU with these and their last caches."""
    if spec.kind != "cpu" or spec.threads == threads:
        return spec
    return spec.model_copy(update={"threads": threads, "cache_bytes": _data_caches_of(threads)})


def _data_caches_of(threads: int) -> tuple[int, ...]:
    return data_caches(Path("/sys/devices/system/cpu"), os.sched_getaffinity(0), threads)


class Cpu:
    """The CPU that this process may use."""

    kind = "cpu"
    language = "cpp"

    def detect(self) -> DeviceSpec:
        info = _cpuinfo(Path("/proc/cpuinfo"))
        threads = allowed_threads()
        return DeviceSpec(
            kind="cpu",
            name=info.get("model name") or info.get("Model") or platform.processor() or platform.machine(),
            architecture=architecture(platform.machine(), info.get("flags") or info.get("Features") or ""),
            threads=threads,
            memory_bytes=allowed_memory(),
            cache_bytes=_data_caches_of(threads),
            toolchain=toolchain(("g++", "clang++"), ("torch",)),
        )

    def roofline(self, spec: DeviceSpec) -> Roofline | None:
        return None
