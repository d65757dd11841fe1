"""Memory limits for all processes of a worker together, by control groups (cgroups(7), version 1 or 2).

The kernel counts shared memory, tmpfs files, page tables and buffers too. Root can make a group, or a user
to whom one above was delegated.
"""

from __future__ import annotations

import itertools
import os
import signal
import time
from contextlib import suppress
from functools import cache
from pathlib import Path

from . import procfs

_PREFIX = "agentforge"
_LIMIT = {1: "memory.limit_in_bytes", 2: "memory.max"}
"""File with the limit, by version."""
_NO_SWAP = {1: (("memory.swappiness", "0"),), 2: (("memory.swap.max", "0"), ("memory.oom.group", "1"))}
_GONE_S = 1.0
"""Longest wait for the end of killed processes."""
_numbers = itertools.count()


class MemoryGroup:
    """A control group with a memory limit. Beyond the limit, the kernel kills a process in it."""

    def __init__(self, version: int, folder: Path) -> None:
        self._folder = folder
        self._limit = folder / _LIMIT[version]
        self._no_swap = _NO_SWAP[version]

    @classmethod
    def create(cls, limit_bytes: int) -> MemoryGroup | None:
        """A new group beside or below this process's own; None if that is not allowed here."""
        for version, parent in _parents():
            group = cls(version, parent / f"{_PREFIX}-{os.getpid()}-{next(_numbers)}")
            try:
                group._folder.mkdir()
            except OSError:
                continue
            try:
                group._limit.write_text(str(limit_bytes))
            except OSError:
                group.remove()
                continue
            for name, value in group._no_swap:
                with suppress(OSError):  # this kernel does not count swap
                    (group._folder / name).write_text(value)
            return group
        return None

    @classmethod
    def of(cls, pid: int, limit_bytes: int) -> MemoryGroup | None:
        """A new group with a process in it; None if that is not allowed here."""
        group = cls.create(limit_bytes)
        if group is None or group.add(pid):
            return group
        group.remove()
        return None

    def add(self, pid: int) -> bool:
        """Move a process into the group; its children will be in it too. False if that is not allowed."""
        try:
            (self._folder / "cgroup.procs").write_text(str(pid))
        except OSError:
            return False
        return True

    def pids(self) -> list[int]:
        """Processes in the group."""
        try:
            return [int(line) for line in (self._folder / "cgroup.procs").read_text().split()]
        except OSError:
            return []

    def remove(self) -> None:
        """Kill the processes in it and remove it; one that does not end leaves the empty group for later."""
        deadline = time.monotonic() + _GONE_S
        while self._folder.exists():
            for pid in self.pids():
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
            with suppress(OSError):
                self._folder.rmdir()
                return
            if time.monotonic() > deadline:
                return
            time.sleep(0.002)


@cache
def _parents() -> tuple[tuple[int, Path], ...]:
    """Groups in which a new one may be made, with their versions."""
    try:
        mounts = [line.split(" - ") for line in procfs.lines("/proc/self/mountinfo") if line]
        own = [line.split(":", 2) for line in procfs.lines("/proc/self/cgroup") if line]
    except OSError:
        return ()
    found: list[tuple[int, Path]] = []
    for left, right in mounts:
        kind, _, options = right.split(" ", 2)
        root, point = left.split(" ")[3:5]
        for number, controllers, path in own:
            if kind == "cgroup2" and number == "0":
                here = _below(point, root, path)
                found += [(2, f) for f in (here, here.parent) if _controls_memory(f)]
            elif kind == "cgroup" and "memory" in controllers.split(",") and "memory" in options.split(","):
                found.append((1, _below(point, root, path)))
    for _, folder in found:
        _remove_abandoned(folder)
    return tuple(found)


def _below(point: str, root: str, path: str) -> Path:
    """Where a group is visible; a container's mount begins at the container's own group."""
    inside = path.removeprefix(root) if root != "/" else path
    return Path(point, inside.lstrip("/"))


def _controls_memory(folder: Path) -> bool:
    try:
        return "memory" in (folder / "cgroup.subtree_control").read_text().split()
    except OSError:
        return False


def _remove_abandoned(folder: Path) -> None:
    with suppress(OSError):
        for group in folder.glob(f"{_PREFIX}-*-*"):
            if not Path("/proc", group.name.split("-")[1]).exists():
                with suppress(OSError):  # its processes have not ended
                    group.rmdir()
