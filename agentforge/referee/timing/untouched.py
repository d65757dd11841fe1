"""Pages of an answer that its writer never touched.

The kernel makes them when they are read, after the clock has stopped. The time of these page faults is added.
"""

from __future__ import annotations

import mmap
import resource
import time
from collections.abc import Sequence
from contextlib import suppress
from functools import lru_cache
from statistics import median

import numpy as np

from ..workers.client import WorkerClient
from ..workers.memory.process_memory import NotAllowed, Unreadable, read_runs

_LOOKED_AT = 1024
"""Pages of an answer that are read, evenly spread."""
_MEASURED = 1024
"""Pages that a fault is timed with."""


def faults_of_reader(client: WorkerClient) -> float:
    """Page faults that reading the newest output costs; 0 if its memory cannot be read.

    The kernel counts the faults of reading another process's memory as the reader's.
    """
    leaves = client.memory.pages()
    pages = sum(map(len, leaves))
    if not client.readable or not pages:
        return 0.0
    step = -(-pages // _LOOKED_AT)
    runs = [(address, 1) for leaf in leaves for address in leaf[::step]]
    with suppress(Unreadable, NotAllowed):  # the answer is read next, and that failure is reported
        first, again = _faults(client.worker.pid, runs), _faults(client.worker.pid, runs)
        return max(0, first - again) * pages / len(runs)
    return 0.0


def _faults(pid: int, runs: Sequence[tuple[int, int]]) -> int:
    before = resource.getrusage(resource.RUSAGE_THREAD).ru_minflt
    read_runs(pid, runs)
    return resource.getrusage(resource.RUSAGE_THREAD).ru_minflt - before


@lru_cache(maxsize=1)
def fault_s() -> float:
    """Seconds that reading one byte of a page takes longer if the page was never touched."""
    took = []
    for _ in range(5):
        with mmap.mmap(-1, _MEASURED * mmap.PAGESIZE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as memory:
            with suppress(OSError, AttributeError):
                memory.madvise(mmap.MADV_NOHUGEPAGE)
            first, again = _read_each(memory), _read_each(memory)
            took.append(max(0.0, first - again) / _MEASURED)
    return median(took)


def _read_each(memory: mmap.mmap) -> float:
    begin = time.perf_counter()
    np.frombuffer(memory, np.uint8)[:: mmap.PAGESIZE].max()
    return time.perf_counter() - begin


class Untouched:
    """Page faults that are left to the readers of two workers' answers, one number for each turn."""

    def __init__(self) -> None:
        self._ours, self._theirs = list[float](), list[float]()

    def add(self, candidate: bool, faults: float) -> None:
        """Remember a turn of the candidate or of the reference."""
        (self._ours if candidate else self._theirs).append(faults)

    def excess_s(self) -> float:
        """Seconds to add to the candidate's call."""
        if not self._ours or not self._theirs:
            return 0.0
        return max(0.0, median(self._ours) - median(self._theirs)) * fault_s()
