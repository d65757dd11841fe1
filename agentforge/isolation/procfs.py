"""What the kernel tells of itself and of processes; everything answers for processes that are gone too."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

_SCHEDULER_CLOCK = 2  # CPUCLOCK_SCHED of the kernel's posix-timers.h
_ANONYMOUS = ("/dev/zero (deleted)", "/anon_hugepage (deleted)")
"""Names that the kernel gives to memory without a file, if it is shared or of huge pages."""
_WAITED, _WAITED_S = 0.25, 1.0
"""Share of the time in which a process could have run, and seconds, beyond which the machine is to blame."""
_SPARE_IDS, _ENOUGH_IDS, _OVERFLOW_ID = range(200_000, 1 << 31), 100_000, 65_534


def boot_id() -> str:
    """Identifier of the kernel that runs since the machine started; empty if there is none."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def own_namespace() -> str:
    """Number of the process namespace that this process counts processes in; empty if that cannot be read."""
    return (namespace(os.getpid()) or "").strip("pid:[]")


def all_pids() -> list[int]:
    """Of the processes that this one can see."""
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]  # noqa: PTH208 - asked often


def lines(path: str) -> list[str]:
    """Lines of a file of the kernel. Names in them are made of any bytes, line breaks other than the kernel's
    too.

    Raises:
        OSError: there is no such file, or no such process any more.
    """
    return Path(path).read_bytes().decode("utf-8", "surrogateescape").split("\n")


def stat_fields(pid: int, thread: int | None = None) -> list[str]:
    """Fields of /proc/PID/stat, or of one of its threads, from the state on; empty if it is gone."""
    place = f"/proc/{pid}" if thread is None else f"/proc/{pid}/task/{thread}"
    try:
        stat = Path(f"{place}/stat").read_bytes()
    except OSError:
        return []
    return stat[stat.rfind(b")") + 1 :].decode().split()


def descendants(pid: int, without: Sequence[int] = ()) -> list[int]:
    """Everything below a process, parents first.

    Args:
        without: children to leave out, with all that is below them.
    """
    children: dict[int, list[int]] = {}
    for other in all_pids():
        fields = stat_fields(other)
        if len(fields) > 1 and other not in without:
            children.setdefault(int(fields[1]), []).append(other)
    found = [pid]
    for parent in found:
        found += children.get(parent, [])
    return found[1:]


def threads_of_user(uid: int) -> int:
    """Number of threads that run under a real user id."""
    number = 0
    for pid in all_pids():
        with suppress(OSError, ValueError):
            fields = dict(line.split(":", 1) for line in lines(f"/proc/{pid}/status") if ":" in line)
            number += int(fields["Threads"]) if int(fields["Uid"].split()[0]) == uid else 0
    return number


def threads(pid: int) -> list[int]:
    """Ids of its threads, the first one first; none if it is gone."""
    try:
        return sorted(map(int, os.listdir(f"/proc/{pid}/task")))  # noqa: PTH208 - asked often
    except OSError:
        return []


def cpu_seconds(pid: int) -> float:
    """CPU time of its threads, those that have ended included; 0 if it is gone.

    Reads the process's CPU clock (`clock_getcpuclockid`); `schedstat` forgets ended threads.
    """
    try:
        return time.clock_gettime((~pid << 3) | _SCHEDULER_CLOCK)
    except OSError:
        return 0.0


def ended_children_seconds(pid: int) -> float:
    """CPU time of children that ended and that it waited for, in steps of a clock tick; 0 if it is gone."""
    fields = stat_fields(pid)
    return (int(fields[13]) + int(fields[14])) / os.sysconf("SC_CLK_TCK") if len(fields) > 14 else 0.0


def thread_seconds(pid: int, thread: int) -> float:
    """CPU time of one of its threads, 0 if it is gone."""
    try:
        return int(Path(f"/proc/{pid}/task/{thread}/schedstat").read_text().split()[0]) / 1e9
    except (OSError, ValueError):
        return 0.0


def starved(pids: Iterable[int]) -> bool:
    """Whether processes waited long for processors (`schedstat`), so that a quiet machine would have let them
    do more. True if the system does not say."""
    ran_ns = waited_ns = 0
    for place in (f"/proc/{pid}/task/{thread}" for pid in pids for thread in threads(pid)):
        with suppress(OSError, ValueError):
            ran, waited, _ = lines(f"{place}/schedstat")[0].split()
            ran_ns, waited_ns = ran_ns + int(ran), waited_ns + int(waited)
    return not ran_ns or waited_ns > max(_WAITED_S * 1e9, _WAITED * (ran_ns + waited_ns))


def page_faults(pid: int) -> int:
    """Page faults without input or output that it had so far, 0 if it is gone."""
    fields = stat_fields(pid)
    return int(fields[7]) if len(fields) > 7 else 0


def stands_still(pid: int) -> bool:
    """Whether all its threads are stopped, or gone."""
    return all(_state(pid, thread) in "TtZX" for thread in threads(pid))


def _state(pid: int, thread: int) -> str:
    return (stat_fields(pid, thread) or ["X"])[0]


def mapped(pid: int, name: str) -> list[tuple[int, int]]:
    """Address ranges whose file's name contains `name`; empty if that cannot be read."""
    return [_addresses(line) for line in _mappings(pid) if name in line]


def shown_twice(pid: int, name: str) -> list[tuple[int, int]]:
    """Address ranges whose pages another range of the process shows too, and those whose file's name contains
    `name`; empty if that cannot be read."""
    found, files = [], dict[tuple[str, str], list[tuple[int, int, int]]]()
    for line in _mappings(pid):
        _, _, offset, device, inode, *_ = line.split()
        first, last = _addresses(line)
        if name in line:
            found.append((first, last))
        elif _has_file(line):
            begin = int(offset, 16)
            files.setdefault((device, inode), []).append((begin, begin + last - first, first))
    for parts in files.values():
        reaches, holder = 0, (0, 0)
        for begin, end, first in sorted(parts):
            place = (first, first + end - begin)
            if begin < reaches:
                found += [place, holder]
            if end > reaches:
                reaches, holder = end, place
    return found


def backed_by_files(pid: int) -> list[tuple[int, int]]:
    """Address ranges whose content belongs to a file or a System V segment, so it can outlive the range;
    empty if that cannot be read."""
    return [_addresses(line) for line in _mappings(pid) if _has_file(line) and not line.endswith(_ANONYMOUS)]


def _has_file(mapping: str) -> bool:
    """A System V segment's inode is its number, which may be 0."""
    _, _, _, device, inode, *_ = mapping.split()
    return inode != "0" or device != "00:00"


def _mappings(pid: int) -> list[str]:
    try:
        return [line for line in lines(f"/proc/{pid}/maps") if line]
    except OSError:
        return []


def _addresses(mapping: str) -> tuple[int, int]:
    first, last = mapping.split()[0].split("-")
    return int(first, 16), int(last, 16)


def resident_bytes(pid: int) -> int:
    """Resident memory, shared pages included; the first thread has none if it ended before others.

    Shared memory without a file counts as it is mapped: its pages stay when the process gives them back
    (`madvise`).
    """
    for thread in threads(pid):
        with suppress(OSError, ValueError, IndexError):
            statm = lines(f"/proc/{pid}/task/{thread}/statm")[0].split()
            resident, shared = (int(pages) * os.sysconf("SC_PAGE_SIZE") for pages in statm[1:3])
            if resident:
                ranges = (_addresses(line) for line in _mappings(thread) if line.endswith(_ANONYMOUS))
                return resident + max(0, sum(last - first for first, last in ranges) - shared)
    return 0


def is_zombie(pid: int) -> bool:
    """Whether it has ended. While others of its threads run, it has not, although its first one has."""
    if (stat_fields(pid) or ["X"])[0] not in "ZX":
        return False
    return all(_state(pid, thread) in "ZX" for thread in threads(pid))


def namespace(pid: int) -> str | None:
    """Its process namespace, None if that cannot be read."""
    try:
        return os.readlink(f"/proc/{pid}/ns/pid") if pid else None  # noqa: PTH115 - asked of every process
    except OSError:
        return None


def namespace_init(pid: int) -> int:
    """The parent of the worker's process: the first process of its namespace."""
    fields = stat_fields(pid)
    return int(fields[1]) if len(fields) > 1 else 0


def spare_ids(folder: Path = Path("/proc/self")) -> range:
    """Ids that root can give to processes, as users and as groups, and that no other program uses.

    In a container without rights of its own, root has few ids (`user_namespaces`(7)): the upper half of them
    then, below the overflow id (65534). Empty if there are none.
    """
    users, groups = (_id_ranges(folder / name) for name in ("uid_map", "gid_map"))
    both = [range(max(u.start, g.start), min(u.stop, g.stop)) for u in users for g in groups]
    for found in both:
        if found.start <= _SPARE_IDS.start and found.stop >= _SPARE_IDS.start + _ENOUGH_IDS:
            return range(_SPARE_IDS.start, min(found.stop, _SPARE_IDS.stop))
    longest = max(both, key=len, default=range(0))
    stop = min(longest.stop, _OVERFLOW_ID) if longest.start < _OVERFLOW_ID else longest.stop
    return range(longest.start + (stop - longest.start + 1) // 2, stop)


def _id_ranges(path: Path) -> list[range]:
    """The ids of a map; if it cannot be read, all that exist."""
    try:
        rows = [[int(word) for word in line.split()] for line in path.read_text().splitlines()]
    except (OSError, ValueError):
        return [range(1 << 32)]
    return [range(first, first + length) for first, _, length in rows]
