"""What the kernel tells of a process."""

from __future__ import annotations

import mmap
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy
import pytest

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


def test_what_waits_for_processors_is_starved_and_what_hangs_is_not() -> None:
    spinning = "import os; os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})\nwhile True: pass"
    hanging = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    crowd = [subprocess.Popen([sys.executable, "-c", spinning]) for _ in range(4)]
    try:
        deadline = time.monotonic() + 30
        while not procfs.starved([crowd[0].pid]) and time.monotonic() < deadline:
            time.sleep(0.1)
        assert procfs.starved([crowd[0].pid])
        assert procfs.starved([hanging.pid, *(p.pid for p in crowd)])
        assert not procfs.starved([hanging.pid])
    finally:
        for process in (hanging, *crowd):
            process.kill()
            process.wait()
    assert procfs.starved([hanging.pid]), "the system does not say"


ENDED_FIRST_THREAD = """
import ctypes, os, threading, time
kept = bytearray(64 << 20)
threading.Thread(target=time.sleep, args=(60,)).start()
ctypes.CDLL(None).syscall(93 if os.uname().machine == "aarch64" else 60, 0)  # exit(2), of this thread
"""


def test_a_process_lives_while_one_of_its_threads_does() -> None:
    process = subprocess.Popen([sys.executable, "-c", ENDED_FIRST_THREAD])
    try:
        deadline = time.monotonic() + 20
        while procfs.stat_fields(process.pid)[0] != "Z" and time.monotonic() < deadline:
            time.sleep(0.01)
        assert procfs.stat_fields(process.pid)[0] == "Z"
        assert not procfs.is_zombie(process.pid)
        assert not procfs.stands_still(process.pid)
        assert procfs.resident_bytes(process.pid) > 64 << 20
    finally:
        process.kill()
    while not procfs.is_zombie(process.pid) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert procfs.is_zombie(process.pid) and procfs.stands_still(process.pid)
    process.wait()
    assert procfs.is_zombie(process.pid)


ODD_NAMES = """
import ctypes, mmap, os
ctypes.CDLL(None).prctl(15, b"\\xff\\xfe)\\x0b R 1\\n", 0, 0, 0)  # PR_SET_NAME
kept = []
for name in (b"odd\\x0b1-2 x", b"odd\\x1c\\x1d\\n\\xe2\\x80\\xa8", b"odd\\xff"):
    descriptor = os.open(name, os.O_RDWR | os.O_CREAT, 0o600)
    os.ftruncate(descriptor, mmap.PAGESIZE)
    kept.append(mmap.mmap(descriptor, mmap.PAGESIZE))
print("ready", flush=True)
input()
"""


def test_names_are_made_of_any_bytes(tmp_path: Path) -> None:
    """Bytes that are no UTF-8, and characters at which Python splits lines or words."""
    process = subprocess.Popen(
        [sys.executable, "-c", ODD_NAMES],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=tmp_path,
    )  # fmt: skip
    assert process.stdout is not None
    try:
        assert process.stdout.readline() == "ready\n"
        assert procfs.stat_fields(process.pid)[1] == str(os.getpid())
        assert process.pid in procfs.descendants(os.getpid())
        assert procfs.threads_of_user(os.getuid()) >= 2
        assert len(procfs.mapped(process.pid, f"{tmp_path}/odd")) == 3
        assert len(procfs.shown_twice(process.pid, f"{tmp_path}/odd")) >= 3
        assert not procfs.is_zombie(process.pid)
    finally:
        process.kill()
        process.wait()


def test_processor_time_of_children_that_have_ended() -> None:
    before = procfs.ended_children_seconds(os.getpid())
    work = "import time\nwhile time.process_time() < 0.2: pass"
    subprocess.run([sys.executable, "-c", work], check=True)
    assert procfs.ended_children_seconds(os.getpid()) - before > 0.15
    assert procfs.ended_children_seconds(0) == 0


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


@pytest.mark.parametrize("flags", [mmap.MAP_SHARED, mmap.MAP_PRIVATE])
def test_pages_of_files(flags: int) -> None:
    descriptor = os.memfd_create("kept")
    os.ftruncate(descriptor, mmap.PAGESIZE)
    try:
        of_file = mmap.mmap(descriptor, mmap.PAGESIZE, flags)
        alone = mmap.mmap(-1, 3 * mmap.PAGESIZE, flags | mmap.MAP_ANONYMOUS)
        found = procfs.backed_by_files(os.getpid())
    finally:
        os.close(descriptor)
    assert any(first <= _address(of_file) < last for first, last in found)
    assert not any(first <= _address(alone) < last for first, last in found)
    assert procfs.backed_by_files(0) == []


SEGMENT = b"""7f0000000000-7f0000100000 rw-s 00000000 00:01 0                          /SYSV00000000 (deleted)
7f0000100000-7f0000200000 rw-s 00000000 00:01 0                          /SYSV00000000 (deleted)
7f0000200000-7f0000300000 rw-p 00000000 00:00 0
"""


def test_a_segment_with_the_number_zero_is_no_anonymous_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "read_bytes", lambda path: SEGMENT)
    ranges = [(0x7F0000000000, 0x7F0000100000), (0x7F0000100000, 0x7F0000200000)]
    assert procfs.backed_by_files(1) == ranges
    assert sorted(procfs.shown_twice(1, "no such file")) == ranges


def _address(memory: mmap.mmap) -> int:
    return int(numpy.frombuffer(memory, numpy.uint8).ctypes.data)


@pytest.mark.parametrize(
    ("users", "groups", "found"),
    [
        ("0 0 4294967295", "0 0 4294967295", range(200_000, 1 << 31)),
        ("0 1000 1\n1 100000 65536", "0 1000 1\n1 100000 65536", range(32_768, 65_534)),
        ("0 100000 65536", "0 100000 65536", range(32_767, 65_534)),
        ("0 100000 65536", "0 0 4294967295", range(32_767, 65_534)),
        ("0 1000 1", "0 1000 1", range(0)),
        ("", "", range(0)),
    ],
)
def test_ids_that_root_can_give(tmp_path: Path, users: str, groups: str, found: range) -> None:
    (tmp_path / "uid_map").write_text(users)
    (tmp_path / "gid_map").write_text(groups)
    assert procfs.spare_ids(tmp_path)[:9] == found[:9]
    assert len(procfs.spare_ids(tmp_path)) == len(found)
    assert len(procfs.spare_ids(tmp_path / "gone")) > 1 << 30


GIVEN_BACK = """
import mmap
memory = mmap.mmap(-1, 256 << 20)
for place in range(0, len(memory), mmap.PAGESIZE):
    memory[place] = 1
memory.madvise(mmap.MADV_DONTNEED)
print(memory[0], flush=True)
input()
"""


def test_shared_memory_that_is_only_said_to_be_given_back_counts() -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", GIVEN_BACK], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    try:
        assert process.stdout.readline() == "1\n", "it is still there"
        assert 256 << 20 < procfs.resident_bytes(process.pid) < 300 << 20
    finally:
        process.kill()
        process.wait()
