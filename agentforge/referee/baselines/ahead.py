"""Trusted workers that compile beside other work: to fill the compiler's cache, or to be measured later."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from math import inf
from threading import Lock, Thread
from typing import Any

from ..timing.exclusive_run import ExclusiveRun
from ..workers.client import WorkerClient

Spawn = Callable[[str, bool], WorkerClient]
"""Makes a trusted worker of a name; if the second argument is true, one that runs beside others, with less
priority, and is never timed."""
TIME_NOTHING = ("default", "freezing")
"""Modes that time no code while they compile: on a CPU, several may compile at once."""
_AT_ONCE = 2
"""Workers that are constructed or compile at once."""
Reply = dict[str, Any]
_END_S = 2.0
"""Longest wait for the end of a worker that was killed."""


class CompilingAhead:
    """Workers that compile one after the other, in a thread of their own, and then end. What one cannot do is
    left to its baseline.

    Args:
        spawns: each forks a worker; its client shares nothing with other workers.
        compile: asks a worker to.
    """

    def __init__(
        self, spawns: Sequence[Callable[[], WorkerClient]], compile: Callable[[WorkerClient], object]
    ) -> None:
        self._spawns, self._compile = spawns, compile
        self._lock = Lock()
        self._client: WorkerClient | None = None
        self._unwanted = False
        self._thread = Thread(target=self._run, daemon=True)
        self._thread.start()

    def wait(self, until: float = inf) -> None:
        """Until it has ended: nothing may be timed before. At `until` (`time.monotonic()`) it is ended."""
        with self._lock:
            if self._client is not None:
                self._client.worker.hurry()
        self._thread.join(None if until == inf else max(0.0, until - time.monotonic()))
        if self._thread.is_alive():
            self.close()

    def close(self) -> None:
        """End it, now or as soon as it exists; the thread removes the rest."""
        with self._lock:
            self._unwanted = True
            compiling = self._client is not None
            if self._client is not None:
                self._client.worker.end()
        if compiling:
            self._thread.join(_END_S)

    def _run(self) -> None:
        for spawn in self._spawns:
            if not self._unwanted:
                self._compile_one(spawn)

    def _compile_one(self, spawn: Callable[[], WorkerClient]) -> None:
        with suppress(Exception):  # also of a forkserver that is closed meanwhile
            client = spawn()
            try:
                with self._lock:
                    self._client = None if self._unwanted else client
                if self._client is not None:
                    self._compile(client)
            finally:
                with self._lock:
                    self._client = None
                client.close()


class Starting:
    """Workers by name, from their begin until they are taken; a thread of its own asks each."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(_AT_ONCE, "baselines")
        self._begun: dict[str, tuple[WorkerClient, Future[Reply]]] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._begun

    def begin(self, client: WorkerClient, construct: Callable[[WorkerClient], Reply]) -> None:
        """Let a worker construct the reference; that stops no other worker."""

        def ask() -> Reply:
            shared, client.exclusive = client.exclusive, ExclusiveRun()
            try:
                return construct(client)
            finally:
                client.worker.settle()
                client.exclusive = shared

        self._begun[client.name] = client, self._pool.submit(ask)

    def take(self, name: str) -> tuple[WorkerClient, Future[Reply]]:
        """A worker, and its answer once it is there."""
        return self._begun.pop(name)

    def rest(self) -> dict[str, WorkerClient]:
        """The workers that were not taken."""
        return {name: client for name, (client, _) in self._begun.items()}

    def close(self) -> None:
        """Wait for the threads; their workers must have been ended."""
        self._pool.shutdown(cancel_futures=True)


def answer(client: WorkerClient, future: Future[Reply], until: float = inf) -> Reply:
    """A worker's answer; at `until` (`time.monotonic()`) the worker is ended.

    Raises:
        WorkerFailure: it failed, or was ended.
    """
    try:
        return future.result(None if until == inf else max(0.0, until - time.monotonic()))
    except TimeoutError:
        client.worker.end()
        return future.result()
    except BaseException:
        client.worker.end()
        raise
