"""CPU and memory limits of this process: affinity and control groups, versions 1 and 2."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from pathlib import Path

CGROUPS = Path("/sys/fs/cgroup")
PROC = Path("/proc")


def allowed_threads() -> int:
    """CPUs that this process may use: affinity, limited by the control group's quota, at least 1."""
    return max(1, math.ceil(min(len(os.sched_getaffinity(0)), cpu_quota())))


def cpu_quota(cgroups: Path = CGROUPS, proc: Path = PROC) -> float:
    """CPUs granted by the tightest control group above this process; infinity without a limit."""
    quota = math.inf
    for folder in _folders(cgroups, proc, "cpu"):
        text = _read(folder / "cpu.max")
        limit, period = text.split() if text else (_read(folder / "cpu.cfs_quota_us"), "")
        period = period or _read(folder / "cpu.cfs_period_us")
        if limit not in ("", "max", "-1") and float(period or 0) > 0:
            quota = min(quota, float(limit) / float(period))
    return quota


def allowed_memory(cgroups: Path = CGROUPS, proc: Path = PROC) -> int:
    """Bytes of memory that this process may use: the machine's, limited by the control groups."""
    total = _meminfo(proc, "MemTotal")
    for _, limit, _ in _memory_limits(cgroups, proc):
        total = min(total, limit) if total else limit
    return total


def free_memory(cgroups: Path = CGROUPS, proc: Path = PROC) -> int:
    """Bytes of memory that this process can still take: what the machine has available, and no more than the
    control groups leave. Pages of files count as free, since the kernel takes them back."""
    free = _meminfo(proc, "MemAvailable")
    for folder, limit, usage in _memory_limits(cgroups, proc):
        used = _read(folder / usage)
        if used.isdigit():
            free = min(free, limit - int(used) + _pages_of_files(folder))
    return max(0, free)


def _meminfo(proc: Path, name: str) -> int:
    lines = _read(proc / "meminfo").splitlines()
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{name}:")), 0)


def _memory_limits(cgroups: Path, proc: Path) -> Iterator[tuple[Path, int, str]]:
    """Folder of each group with a limit, the limit in bytes, and the name of the file with the bytes in
    use."""
    for folder in _folders(cgroups, proc, "memory"):
        for name, usage in (
            ("memory.max", "memory.current"), ("memory.limit_in_bytes", "memory.usage_in_bytes"),
        ):  # fmt: skip
            text = _read(folder / name)
            if text.isdigit():
                yield folder, int(text), usage


def _pages_of_files(folder: Path) -> int:
    """Bytes in a group, and in those below it: version 1 names these sums `total_...`."""
    rows = dict(line.split(" ", 1) for line in _read(folder / "memory.stat").splitlines() if " " in line)
    found = (rows.get(f"total_{name}", rows.get(name, "0")) for name in ("inactive_file", "active_file"))
    return sum(int(text) for text in found if text.isdigit())


def _folders(cgroups: Path, proc: Path, controller: str) -> Iterator[Path]:
    """The control group of this process and those above it, for one controller.

    Inside a container, the path of `/proc/self/cgroup` is often the host's and does not exist: the walk
    up ends at the top of the mount.
    """
    for line in _read(proc / "self" / "cgroup").splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers == "":
            top = cgroups
        elif controller in controllers.split(","):
            top = cgroups / controller
        else:
            continue
        folder = top / path.lstrip("/")
        while True:
            if folder.is_dir():
                yield folder
            if folder == top or top not in folder.parents:
                break
            folder = folder.parent


def _read(path: Path) -> str:
    try:
        return path.read_text().strip()
    except (OSError, UnicodeDecodeError):
        return ""
