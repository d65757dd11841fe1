"""What else runs on the machine, and waiting for quiet moments up to a limit that the user sets."""

from __future__ import annotations

import os
import time
from pathlib import Path

_SAMPLES, _BETWEEN_S, _PAUSE_S = 3, 2e-3, 5e-2
_LOADAVG = Path("/proc/loadavg")


class Patience:
    """Seconds that one evaluation may spend because other programs use the processors.

    Args:
        seconds: limit for the whole evaluation (setting `referee.patience_s`).
    """

    def __init__(self, seconds: float, threads: int) -> None:
        self.left = seconds
        self.waited = 0.0
        """Seconds spent waiting for a quiet moment."""
        self._threads = threads

    def spend(self, seconds: float) -> None:
        """Take seconds from the limit; less than none are none."""
        self.left = max(0.0, self.left - max(0.0, seconds))

    def wait(self) -> bool:
        """Wait until the processors are free, while seconds are left. No worker may run meanwhile.

        Returns:
            Whether they are still busy.
        """
        begin = time.monotonic()
        while (busy := self._busy()) and self.left > time.monotonic() - begin:
            time.sleep(_PAUSE_S)
        if (took := time.monotonic() - begin) >= _PAUSE_S:
            self.waited += took
            self.spend(took)
        return busy

    def _busy(self) -> bool:
        """Whether fewer processors are free than a worker has threads, in any of a few samples."""
        for number in range(_SAMPLES):
            if number:
                time.sleep(_BETWEEN_S)
            if busy(self._threads):
                return True
        return False


def busy(threads: int) -> bool:
    """Whether fewer processors are free now than this number of threads.

    False if this process may use only some of the processors: the system counts what runs on any of them.
    """
    processors = os.cpu_count() or 1
    return len(os.sched_getaffinity(0)) == processors and processors - others_running() < threads


def others_running() -> int:
    """Threads beside this one that run, or could run, now; 0 if the system does not say."""
    try:
        return max(0, int(_LOADAVG.read_text().split()[3].split("/")[0]) - 1)
    except (OSError, IndexError, ValueError):
        return 0


def processor_jiffies() -> tuple[int, int]:
    """Jiffies stolen and in all."""
    fields = [int(x) for x in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
    return fields[7], sum(fields)


def stolen(before: tuple[int, int], after: tuple[int, int]) -> float:
    """Share of processor time that was stolen between two `processor_jiffies`."""
    total = after[1] - before[1]
    return (after[0] - before[0]) / total if total > 0 else 0.0
