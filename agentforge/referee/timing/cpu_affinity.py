"""Pins the threads of the measured workers to processors.

On a CPU each thread gets a processor of its own: with as many threads as processors, a working thread may
wait for a spinning one on its processor, many times the length of a short call. It is tried on the candidate
first; if it makes that slower, none is pinned.

On a GPU each worker gets a processor of its own, which all of its threads share and no other worker uses: one
thread launches all work. A stopped worker would continue on another processor, with cold caches. On an H100,
equal workers then differed by up to 60 % in a block. With processors of their own, and small launches before
a call (`TorchGpu.prepare`), they differed by up to 10 %.
"""

from __future__ import annotations

import os
from collections.abc import Collection
from contextlib import suppress
from typing import Protocol

from agentforge.isolation import procfs

from ..workers.client import WorkerClient

_CALLS = 4
"""Calls of which the fastest counts."""
_SLOWER = 1.15
_LONG_NS = 20_000_000
"""Waiting for a tick is a small part of such a call."""


class CpuAffinity(Protocol):
    """Where the threads of workers run in one timing."""

    def place(self, client: WorkerClient) -> None:
        """Pin the threads that the worker has now, if workers are pinned."""
        ...

    def settle(self, eager: WorkerClient, candidate: WorkerClient) -> str:
        """Decide whether workers are pinned, and pin these two, which were called before.

        Returns:
            What was done, for a person.

        Raises:
            WorkerFailure: one failed in a call.
        """
        ...


class ProcessorPerThread:
    """Each thread has a processor of its own."""

    def __init__(self, clients: Collection[WorkerClient], threads: int) -> None:
        self._clients = clients
        self._processors = sorted(os.sched_getaffinity(0))
        self._seen: dict[int, list[int]] = {}
        self.on = threads == len(self._processors) > 1 and all(p.readable for p in clients)

    def place(self, client: WorkerClient) -> None:
        """See `CpuAffinity.place`; of many threads, those that worked most have a processor."""
        pid = client.worker.pid
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

    def settle(self, eager: WorkerClient, candidate: WorkerClient) -> str:
        """See `CpuAffinity.settle`: none is pinned if that makes the candidate slower or calls are long."""
        self.place(eager)
        if not self.on:
            return "threads are not pinned: their number differs from the number of processors"
        if candidate.call(0) > _LONG_NS:
            self.end()
            return "threads are not pinned: calls are long"
        free = _fastest(candidate)
        self.place(candidate)
        if _fastest(candidate) > _SLOWER * free:
            self.end()
            return "threads are not pinned: the candidate is slower with pinned threads"
        return "each thread has a processor of its own"

    def end(self) -> None:
        """Undo all pinning."""
        self.on = False
        for client in self._clients:
            for thread in procfs.threads(client.worker.pid):
                _allow(thread, self._processors)


class ProcessorPerWorker:
    """Each worker has a processor of its own."""

    def __init__(self, clients: Collection[WorkerClient]) -> None:
        processors = sorted(os.sched_getaffinity(0))
        step = len(processors) // (len(clients) + 1)  # the first is the referee's
        own = processors[step::step] if step else ()
        self._own = dict(zip((client.worker.pid for client in clients), own, strict=False))

    def place(self, client: WorkerClient) -> None:
        """See `CpuAffinity.place`."""
        processor = self._own.get(client.worker.pid)
        if processor is not None:
            for thread in procfs.threads(client.worker.pid):
                _allow(thread, {processor})

    def settle(self, eager: WorkerClient, candidate: WorkerClient) -> str:
        """See `CpuAffinity.settle`: all are pinned if there are enough processors."""
        if not self._own:
            return "workers are not pinned: there are too few processors"
        self.place(eager)
        self.place(candidate)
        return "each worker has a processor of its own"


def _fastest(client: WorkerClient) -> int:
    return min(client.call(0) for _ in range(_CALLS))


def _allow(thread: int, processors: Collection[int]) -> None:
    with suppress(OSError):  # it has ended, or is another user's
        os.sched_setaffinity(thread, processors)
