"""What the kernel tells of a process."""

from __future__ import annotations

import mmap
import os
import subprocess
import sys
import time

import numpy

from agentforge.isolation import procfs

ENDED_THREAD = """
import threading, time
def work():
    while time.thread_time() < 0.2: pass
thread = threading.Thread(target=work)
thread.start()
thread.join()
print(time.process_time(), flush=True)
input()
"""


def test_processor_time_includes_threads_that_have_ended() -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", ENDED_THREAD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    try:
        own = float(process.stdout.readline())
        assert own <= procfs.cpu_seconds(process.pid) < own + 0.1
        deadline = time.monotonic() + 20  # join() returns before the kernel has taken the thread away
        while len(procfs.threads(process.pid)) > 1 and time.monotonic() < deadline:
            time.sleep(0.01)
        assert len(procfs.threads(process.pid)) == 1
        assert procfs.thread_seconds(process.pid, process.pid) < own
    finally:
        process.kill()
        process.wait()
    assert procfs.cpu_seconds(process.pid) == 0


def test_pages_that_two_ranges_show() -> None:
    descriptor = os.memfd_create("twice")
    os.ftruncate(descriptor, 8 * mmap.PAGESIZE)
    try:
        views = [mmap.mmap(descriptor, size * mmap.PAGESIZE) for size in (8, 2)]
        alone = mmap.mmap(-1, 3 * mmap.PAGESIZE)
        found = procfs.shown_twice(os.getpid(), "no such file")
        named = procfs.shown_twice(os.getpid(), "/dev/zero")
    finally:
        os.close(descriptor)
    for view in views:
        assert any(first <= _address(view) < last for first, last in found)
    assert not any(first <= _address(alone) < last for first, last in found)
    assert any(first <= _address(alone) < last for first, last in named)
    views[1].close()
    left = procfs.shown_twice(os.getpid(), "no such file")
    assert not any(first <= _address(views[0]) < last for first, last in left)


def _address(memory: mmap.mmap) -> int:
    return int(numpy.frombuffer(memory, numpy.uint8).ctypes.data)
