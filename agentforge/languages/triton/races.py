"""Programs of one launch that meet in memory without atomics.

The interpreter runs programs one after the other, so that what is a race on a GPU is right there every time.
"""

from __future__ import annotations

import numpy as np

_MOST_SPINS = 20_000
"""Comparing exchanges of one program that change nothing, one after the other."""


class Race(RuntimeError):
    """Two programs touch the same address, one of them writes, and no order is kept between them."""


class Meetings:
    """Who wrote what during one launch. A kernel with atomics may keep an order by them: nothing is said.

    Args:
        ranges: first address and end of all memory that the kernel was given.
    """

    def __init__(self, ranges: list[tuple[int, int]]) -> None:
        self._ranges = ranges
        self._writers: dict[int, tuple[int, np.ndarray]] = {}
        """By first address of the memory: bytes of an element, and for each who wrote it last, from 1 on."""
        self._ordered = False
        self._spins = 0

    def atomic(self) -> None:
        """The kernel has done something atomic."""
        self._ordered = True

    def exchanged(self, *, changed: bool) -> bool:
        """Note a comparing exchange.

        Returns:
            Whether the program waits for another one, which runs after it here: forever.
        """
        self._spins = 0 if changed else self._spins + 1
        return self._spins > _MOST_SPINS

    def read(self, places: np.ndarray, program: int) -> None:
        """See that nobody else wrote there.

        Args:
            places: addresses.
            program: who reads.

        Raises:
            Race
        """
        if self._ordered or not self._writers:
            return
        for first, end in self._ranges:
            if first in self._writers:
                size, writers = self._writers[first]
                at = (places[(places >= first) & (places < end)] - np.uint64(first)) // np.uint64(size)
                self._refuse(writers[at], program, "loads what program {} stored")

    def write(self, places: np.ndarray, same: np.ndarray, size: int, program: int) -> None:
        """Note who writes, and see that nobody else wrote something else there.

        Args:
            places: addresses.
            same: where memory holds the value already.
            size: bytes of each.
            program: who writes.

        Raises:
            Race
        """
        if self._ordered:
            return
        for first, end in self._ranges:
            inside = (places >= first) & (places < end)
            if not inside.any():
                continue
            if first not in self._writers:
                self._writers[first] = size, np.zeros(-(-(end - first) // size), np.int32)
            element, writers = self._writers[first]
            at = (places[inside] - np.uint64(first)) // np.uint64(element)
            self._refuse(writers[at][~same[inside]], program, "stores where program {} stored")
            for more in range(max(1, size // element)):
                writers[at + np.uint64(more)] = program + 1

    def _refuse(self, writers: np.ndarray, program: int, what: str) -> None:
        others = writers[(writers != 0) & (writers != program + 1)]
        if others.size:
            text = what.format(int(others[0]) - 1)
            raise Race(f"program {program} {text}, and on a GPU they run at the same time: a race")
