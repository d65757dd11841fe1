"""A processor of its own for each thread of whoever is timed.

Idle OpenMP threads spin. Where there are as many as processors, and the referee needs one now and then, the
scheduler at times lets two share one while another is free: the one that has work waits for one that spins
until the next tick or longer, many times what a short call takes. Threads with processors of their own cannot
be put so. Threads that a call starts inherit their maker's processor, and a pool larger than the
machine does not fit: it is tried on the candidate, and nobody is placed where that makes it slower.
"""

from __future__ import annotations

import os
from collections.abc import Collection
from contextlib import suppress

from . import procfs
from .party import Party

_CALLS = 4
"""The fastest of so many shows how fast a party can be."""
_SLOWER = 1.15
_LONG_NS = 20_000_000
"""Waiting for a tick is a small part of such a call."""


class Placement:
    """Whether the threads of parties have processors of their own, in one timing.

    Args:
        parties: all that are timed.
        threads: that each may use; unless these are all processors, nobody has to share one.
    """

    def __init__(self, parties: Collection[Party], threads: int) -> None:
        self._parties = parties
        self._processors = sorted(os.sched_getaffinity(0))
        self._seen: dict[int, list[int]] = {}
        self.on = threads == len(self._processors) > 1 and all(p.readable for p in parties)

    def place(self, party: Party) -> None:
        """Give each thread that the party has now a processor; of many, those that worked most."""
        pid = party.worker.pid
        threads = procfs.threads(pid)
        if not self.on or threads == self._seen.get(pid):
            return
        self._seen[pid] = threads
        busiest = sorted(threads, key=lambda thread: -procfs.thread_seconds(pid, thread))
        if len(busiest) > 1:
            for thread, processor in zip(busiest, self._processors, strict=False):
                _allow(thread, {processor})
        for thread in busiest[len(self._processors) :]:
            _allow(thread, self._processors)

    def settle(self, party: Party) -> str:
        """Place the party, which was called before; nobody where that is slower for it, or hardly matters.

        Returns:
            What was done, for a person.

        Raises:
            PartyFailure: it failed in a call.
        """
        if not self.on:
            return "threads run where they like: there are not as many as processors"
        with party.running_on():
            if party.call(0) > _LONG_NS:
                self.end()
                return "threads run where they like: calls are long"
            free = min(party.call(0) for _ in range(_CALLS))
            self.place(party)
            if min(party.call(0) for _ in range(_CALLS)) > _SLOWER * free:
                self.end()
                return "threads run where they like: the candidate is slower with processors of their own"
        return "each thread has a processor of its own"

    def end(self) -> None:
        """Let every thread run where it likes."""
        self.on = False
        for party in self._parties:
            for thread in procfs.threads(party.worker.pid):
                _allow(thread, self._processors)


def _allow(thread: int, processors: Collection[int]) -> None:
    with suppress(OSError):  # it has ended, or is another user's
        os.sched_setaffinity(thread, processors)
