"""CPU and memory limits of this process: affinity and control groups, versions 1 and 2."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from pathlib import Path

CGROUPS = Path("/sys/fs/cgroup")
PROC = Path("/proc")
_MEMORY_FILES = (
    ("memory.max", "memory.current", "inactive_file"),
    ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
)
"""A group's limit, its use, and the key of cached files in `memory.stat`, by version of control groups."""


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
    meminfo = _read(proc / "meminfo")
    total = next((int(line.split()[1]) * 1024 for line in meminfo.splitlines() if "MemTotal" in line), 0)
    for folder in _folders(cgroups, proc, "memory"):
        for name, _, _ in _MEMORY_FILES:
            text = _read(folder / name)
            if text.isdigit():
                total = min(total, int(text)) if total else int(text)
    return total


def memory_room(cgroups: Path = CGROUPS, proc: Path = PROC) -> float:
    """Bytes that the control groups above this process still grant; infinity without a limit.

    Cached files that were not read lately count as free: the kernel drops them first.
    """
    room = math.inf
    for folder in _folders(cgroups, proc, "memory"):
        for limit, usage, inactive in _MEMORY_FILES:
            granted, used = _read(folder / limit), _read(folder / usage)
            if granted.isdigit() and used.isdigit():
                statistics = dict(line.split() for line in _read(folder / "memory.stat").splitlines())
                room = min(room, max(0, int(granted) - int(used) + int(statistics.get(inactive, 0))))
    return room


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
