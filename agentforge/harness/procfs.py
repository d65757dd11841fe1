"""What /proc tells of a process; everything answers for processes that are gone too."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path


def all_pids() -> list[int]:
    """Of the processes that this one can see."""
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]  # noqa: PTH208 - asked often


def stat_fields(pid: int) -> list[str]:
    """Fields of /proc/PID/stat from the state on; empty where it is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def threads(pid: int) -> list[int]:
    """Ids of its threads, the first one first; none where it is gone."""
    try:
        return sorted(map(int, os.listdir(f"/proc/{pid}/task")))  # noqa: PTH208 - asked often
    except OSError:
        return []


def cpu_seconds(pid: int) -> float:
    """CPU time of its threads."""
    return sum(thread_seconds(pid, thread) for thread in threads(pid))


def thread_seconds(pid: int, thread: int) -> float:
    """CPU time of one of its threads, 0 where it is gone."""
    try:
        return int(Path(f"/proc/{pid}/task/{thread}/schedstat").read_text().split()[0]) / 1e9
    except (OSError, ValueError):
        return 0.0


def stands_still(pid: int) -> bool:
    """Whether all its threads are stopped, or gone."""
    for thread in threads(pid):
        with suppress(OSError):
            stat = Path(f"/proc/{pid}/task/{thread}/stat").read_bytes()
            if stat[stat.rindex(b")") + 2 : stat.rindex(b")") + 3] not in b"TtZX":
                return False
    return True


def mapped(pid: int, name: str) -> list[tuple[int, int]]:
    """Address ranges whose file's name holds `name`; empty where that cannot be read."""
    try:
        lines = Path(f"/proc/{pid}/maps").read_text().splitlines()
    except OSError:
        return []
    found = [line.split()[0].split("-") for line in lines if name in line]
    return [(int(first, 16), int(last, 16)) for first, last in found]


def resident_bytes(pid: int) -> int:
    """Resident memory, shared pages included."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0


def is_zombie(pid: int) -> bool:
    """Whether it has ended."""
    fields = stat_fields(pid)
    return not fields or fields[0] in "ZX"


def session(pid: int) -> int:
    """Its session, -1 where it is gone."""
    fields = stat_fields(pid)
    return int(fields[3]) if len(fields) > 3 else -1


def owner(pid: int) -> int:
    """Its user id, -1 where it is gone."""
    try:
        return Path(f"/proc/{pid}").stat().st_uid
    except OSError:
        return -1


def namespace(pid: int) -> str | None:
    """Its process namespace, None where that cannot be read."""
    try:
        return os.readlink(f"/proc/{pid}/ns/pid") if pid else None  # noqa: PTH115 - asked of every process
    except OSError:
        return None


def namespace_init(pid: int) -> int:
    """The parent of the worker's process: the first process of its namespace."""
    fields = stat_fields(pid)
    return int(fields[1]) if len(fields) > 1 else 0
