"""The weakest sandbox: resource limits, closed descriptors, another user if the caller is root."""

from __future__ import annotations

import os
import resource
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from agentforge.registry import Availability

from .. import linux, procfs, seccomp
from ..watcher import fork_watched
from ._base import Box, Limits

_RESERVED = 64 << 30
"""Addresses without memory that an allocator may reserve."""


def close_descriptors(keep_fds: Sequence[int]) -> None:
    """Close all but 0-2 and `keep_fds`."""
    low = 3
    for fd in sorted(set(keep_fds)):
        os.closerange(low, fd)
        low = max(low, fd + 1)
    os.closerange(low, resource.getrlimit(resource.RLIMIT_NOFILE)[0])


@dataclass(frozen=True)
class Mapped:
    """Bytes that a process has mapped: all, and those of memory of its own that it may write to."""

    total: int
    own: int

    @classmethod
    def now(cls) -> Mapped:
        """Of this process."""
        total, *_, own, _ = map(int, Path("/proc/self/statm").read_text().split())
        return cls(total * resource.getpagesize(), own * resource.getpagesize())


def apply_limits(limits: Limits, before: Mapped) -> None:
    """Set the resource limits, hard and soft.

    Args:
        before: what the process started with; `memory_bytes` come on top.
    """

    def cap(kind: int, value: int) -> None:
        hard = resource.getrlimit(kind)[1]
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(kind, (value, value))

    cap(resource.RLIMIT_DATA, before.own + limits.memory_bytes)
    cap(resource.RLIMIT_AS, before.total + limits.memory_bytes + _RESERVED)
    cap(resource.RLIMIT_FSIZE, limits.file_bytes)
    cap(resource.RLIMIT_CPU, limits.cpu_seconds)
    cap(resource.RLIMIT_NOFILE, limits.open_files)
    cap(resource.RLIMIT_CORE, 0)
    # The kernel counts those of the user, so what runs already is added. It never limits root.
    cap(resource.RLIMIT_NPROC, limits.processes + _running_threads())


def _running_threads() -> int:
    """Threads of this user, or up to twice as many: /proc lacks those outside of a container, and the kernel
    counts them."""
    seen, (soft, hard) = procfs.threads_of_user(os.getuid()), resource.getrlimit(resource.RLIMIT_NPROC)
    try:
        for count in (seen << n for n in range(12)):
            if 0 <= hard <= count:
                break
            resource.setrlimit(resource.RLIMIT_NPROC, (count + 1, hard))
            with suppress(RuntimeError):  # the limit does not allow a thread more
                thread = threading.Thread(target=int)
                thread.start()
                thread.join()
                return count
    finally:
        resource.setrlimit(resource.RLIMIT_NPROC, (soft, hard))
    return seen


@cache
def others_can_read_python() -> bool:
    """Whether another user can reach this interpreter and its packages."""
    folders = [Path(p) for p in {sys.prefix, sys.base_prefix}]
    return all(f.stat().st_mode & 0o005 == 0o005 for p in folders for f in (p, *p.parents) if f.exists())


class Rlimits:
    """Resource limits and closed descriptors. Shares the network, files and processes of its user."""

    name = "rlimits"

    def available(self) -> Availability:
        return Availability(True, "resource limits only: the network and your files stay reachable")

    def enter(self, limits: Limits, *, keep_fds: Sequence[int], box: Box) -> None:
        before = Mapped.now()
        close_descriptors(keep_fds)
        fork_watched()
        another_user = box.identity != 0 and os.geteuid() == 0 and others_can_read_python()
        if another_user:
            os.setgroups([])
            os.setresgid(box.identity, box.identity, box.identity)
            os.setresuid(box.identity, box.identity, box.identity)
            linux.die_with_parent()  # a change of user clears it
        os.chdir(box.scratch)
        apply_limits(limits, before)
        linux.no_new_privileges()
        linux.set_dumpable(False)
        # The watcher has this user id too, unless the caller is root: nothing else may be signalled.
        if box.filtered:
            own = 0 if another_user else os.getpid()
            seccomp.confine(memory_files=bool(box.devices), signals_only_to=own)
