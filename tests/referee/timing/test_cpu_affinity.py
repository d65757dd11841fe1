"""Processors for the threads of those who are timed: given, taken back, refused where they do harm."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from agentforge.isolation import procfs
from agentforge.referee.timing.cpu_affinity import ProcessorPerThread, ProcessorPerWorker

ALL = os.sched_getaffinity(0)
BUSY, IDLE = len(ALL) - 1, 1
PROGRAM = """
import sys, threading, time
def work():
    end = time.thread_time() + 0.02
    while time.thread_time() < end: pass
    time.sleep(600)
for number in range(int(sys.argv[1]) + int(sys.argv[2])):
    busy = number < int(sys.argv[1])
    threading.Thread(target=work if busy else time.sleep, args=() if busy else (600,), daemon=True).start()
while time.thread_time() < 0.1: pass
time.sleep(0.3 if not int(sys.argv[1]) else 0)
print("ready", flush=True)
time.sleep(600)
"""

pytestmark = pytest.mark.skipif(len(ALL) < 2, reason="one processor is nobody's own")


class Process:
    """Stands for a party: a process with threads; how long its calls take depends on where they may run."""

    def __init__(self, busy: int, idle: int = 0, *, placed_ns: int = 100, free_ns: int = 100) -> None:
        argv = [sys.executable, "-c", PROGRAM, str(busy), str(idle)]
        self._process = subprocess.Popen(argv, stdout=subprocess.PIPE)
        assert self._process.stdout is not None and self._process.stdout.readline() == b"ready\n"
        self.worker = SimpleNamespace(pid=self._process.pid)
        self.readable = True
        self._ns = {True: placed_ns, False: free_ns}

    def allowed(self) -> list[set[int]]:
        """Where each thread may run, the first thread first."""
        return [os.sched_getaffinity(thread) for thread in procfs.threads(self.worker.pid)]

    def call(self, slot: int) -> int:
        return self._ns[self.allowed()[0] != ALL]

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()


@pytest.fixture
def made() -> Iterator[list[Process]]:
    found: list[Process] = []
    yield found
    for process in found:
        process.close()


def placement(*clients: Any, threads: int = len(ALL)) -> ProcessorPerThread:
    return ProcessorPerThread(clients, threads)


def test_each_thread_gets_a_processor_and_gives_it_back(made: list[Process]) -> None:
    made.append(client := Process(BUSY))
    where = placement(client)
    where.place(client)  # type: ignore[arg-type]
    assert all(len(allowed) == 1 for allowed in client.allowed())
    assert set.union(*client.allowed()) == ALL
    where.end()
    assert client.allowed() == [ALL] * len(ALL)
    where.place(client)  # type: ignore[arg-type]
    assert client.allowed() == [ALL] * len(ALL)


def test_of_more_threads_than_processors_the_idle_ones_stay_free(made: list[Process]) -> None:
    made.append(client := Process(BUSY, IDLE))
    placement(client).place(client)  # type: ignore[arg-type]
    assert sorted(map(len, client.allowed())) == [1] * len(ALL) + [len(ALL)]


def test_a_single_thread_runs_where_it_likes(made: list[Process]) -> None:
    made.append(client := Process(0))
    placement(client).place(client)  # type: ignore[arg-type]
    assert client.allowed() == [ALL]


def test_threads_that_come_later_are_placed_too(made: list[Process], monkeypatch: pytest.MonkeyPatch) -> None:
    made.append(client := Process(BUSY))
    where = placement(client)
    with monkeypatch.context() as earlier:
        earlier.setattr(procfs, "threads", lambda pid: [pid])
        where.place(client)  # type: ignore[arg-type]
    assert client.allowed() == [ALL] * len(ALL)
    where.place(client)  # type: ignore[arg-type]
    assert all(len(allowed) == 1 for allowed in client.allowed())


def test_nobody_is_placed_while_processors_are_to_spare(made: list[Process]) -> None:
    made.append(client := Process(BUSY))
    placement(client, threads=len(ALL) - 1).place(client)  # type: ignore[arg-type]
    assert client.allowed() == [ALL] * len(ALL)


def test_a_party_whose_memory_cannot_be_read_is_left_alone(made: list[Process]) -> None:
    made.append(client := Process(BUSY))
    client.readable = False
    placement(client).place(client)  # type: ignore[arg-type]
    assert client.allowed() == [ALL] * len(ALL)


@pytest.mark.parametrize(("placed_ns", "stays"), [(400, False), (105, True), (50, True)])
def test_nobody_is_placed_where_it_makes_the_candidate_slower(
    made: list[Process], placed_ns: int, stays: bool
) -> None:
    made.extend((baseline := Process(BUSY), candidate := Process(BUSY, placed_ns=placed_ns)))
    where = placement(baseline, candidate)
    said = where.settle(baseline, candidate)  # type: ignore[arg-type]
    assert ("own" in said.split(":")[0]) is stays
    assert where.on is stays
    for client in (baseline, candidate):
        assert (ALL not in client.allowed()) is stays


def test_long_calls_are_not_worth_it(made: list[Process]) -> None:
    made.extend((baseline := Process(BUSY), client := Process(BUSY, placed_ns=10, free_ns=30_000_000)))
    assert "long" in placement(baseline, client).settle(baseline, client)  # type: ignore[arg-type]
    assert client.allowed() == [ALL] * len(ALL)


def test_a_party_that_is_gone_is_no_error(made: list[Process]) -> None:
    made.append(client := Process(BUSY))
    where = placement(client)
    client.close()
    where.place(client)  # type: ignore[arg-type]
    where.end()


@pytest.fixture
def eight(monkeypatch: pytest.MonkeyPatch) -> dict[int, set[int]]:
    """A machine with eight processors, and where the threads of this test's workers may run."""
    everywhere, found = set(range(8)), dict[int, set[int]]()
    monkeypatch.setattr(os, "sched_getaffinity", lambda thread: found.get(thread, everywhere))
    monkeypatch.setattr(os, "sched_setaffinity", lambda thread, to: found.__setitem__(thread, set(to)))
    monkeypatch.setattr(procfs, "threads", lambda pid: [pid, pid + 1])
    return found


class Launching:
    """A worker with two threads that launches work on a device, as far as pinning sees it."""

    def __init__(self, pid: int) -> None:
        self.worker = SimpleNamespace(pid=pid)


def test_each_worker_on_a_device_gets_a_processor_of_its_own(
    eight: dict[int, set[int]],
) -> None:
    workers: list[Any] = [Launching(pid) for pid in (10, 20, 30)]
    where = ProcessorPerWorker(workers)
    assert where.settle(workers[0], workers[2]) == "each worker has a processor of its own"
    assert 20 not in eight  # its turn is later
    where.place(workers[1])
    assert eight[10] == eight[11] and eight[20] == eight[21] and eight[30] == eight[31]
    own = [eight[pid] for pid in (10, 20, 30)]
    assert all(len(one) == 1 for one in own) and len(set.union(*own)) == 3
    assert 0 not in set.union(*own)  # the referee has one too


def test_no_worker_is_pinned_if_there_are_too_few_processors(eight: dict[int, set[int]]) -> None:
    workers: list[Any] = [Launching(10 * n) for n in range(8)]
    where = ProcessorPerWorker(workers)
    assert "too few" in where.settle(workers[0], workers[1])
    where.place(workers[0])
    assert not eight
