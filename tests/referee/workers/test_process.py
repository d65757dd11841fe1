"""Forkservers and workers: what ends gives everything back, however it ends."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from unittest import mock

import pytest

from agentforge.isolation import procfs
from agentforge.isolation.sandboxes import Box, Limits
from agentforge.isolation.sandboxes.rlimits import Rlimits
from agentforge.languages import CommandResult
from agentforge.referee.profiling_bridge.session import Watch
from agentforge.referee.referee import choose_sandbox
from agentforge.referee.workers.environment import worker_environment
from agentforge.referee.workers.forkserver import CANDIDATE, COMPILED, EAGER, TORCH
from agentforge.referee.workers.process import Forkserver
from agentforge.referee.workers.worker import Worker
from agentforge.schema import HarnessError

LIMITS = Limits(memory_bytes=1 << 30)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Forkserver]:
    made = Forkserver("builder", None, tmp_path, worker_environment(1, tmp_path, {}))
    made.ready()
    yield made
    made.close()


def descriptors() -> list[str]:
    return sorted(path.name for path in Path("/proc/self/fd").iterdir())


def run(server: Forkserver, folder: Path, *argv: str, timeout_s: float = 20.0) -> CommandResult:
    return server.execute(
        argv, cwd=folder, scratch=folder, limits=LIMITS, box=Box(folder), timeout_s=timeout_s
    )


def sleeping(server: Forkserver, folder: Path) -> Worker:
    worker = server._start(folder, {"argv": ["sleep", "60"], "cwd": str(folder)}, None, None)
    worker._greeting(20.0)
    return worker


def test_a_forkserver_outlives_the_thread_that_asked_for_it(tmp_path: Path) -> None:
    sandbox = choose_sandbox("auto")

    def start() -> Forkserver:
        made = Forkserver("builder", sandbox, tmp_path, worker_environment(1, tmp_path, {}))
        made.ready()
        return made

    with ThreadPoolExecutor(1) as pool:
        server = pool.submit(start).result()
    time.sleep(0.2)  # a signal on the thread's death would have come
    try:
        assert run(server, tmp_path, "true").returncode == 0
    finally:
        server.close()


def test_programs_that_end_at_once_leave_nothing(server: Forkserver, tmp_path: Path) -> None:
    run(server, tmp_path, "true")
    before = descriptors()
    results = [run(server, tmp_path, *argv) for argv in [("true",), ("false",), ("no-such-program",)] * 3]
    assert [r.returncode for r in results[:2]] == [0, 1]
    assert results[2].returncode not in (0, 1)
    assert descriptors() == before
    assert not server._workers
    assert not list(tmp_path.glob("*.out"))


def test_a_program_that_runs_too_long_is_ended(server: Forkserver, tmp_path: Path) -> None:
    before = descriptors()
    result = run(server, tmp_path, "sleep", "60", timeout_s=0.2)
    assert result.timed_out
    assert descriptors() == before
    assert not server._workers


def test_reports_that_come_together_are_all_read(server: Forkserver, tmp_path: Path) -> None:
    workers = [sleeping(server, tmp_path) for _ in range(4)]
    for worker in workers:
        worker.end()
    time.sleep(0.3)  # now all reports wait in the socket
    begin = time.monotonic()
    assert [worker.wait(5.0) for worker in workers] == [128 + signal.SIGKILL] * 4
    assert time.monotonic() - begin < 4.0
    for worker in workers:
        worker.kill()


def test_a_profiled_program_that_takes_too_much_memory_is_ended(server: Forkserver, tmp_path: Path) -> None:
    """What it started counts too: each of the two has less than the limit."""
    fill = "import time; kept = b'x' * (60 << 20); time.sleep(30)"
    code = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {fill!r}]); {fill}"
    watch = Watch(110 << 20)
    argv, box = [sys.executable, "-c", code], Box(tmp_path)
    done = server.execute(
        argv, cwd=tmp_path, scratch=tmp_path, limits=LIMITS, box=box, timeout_s=25.0, wait=watch
    )
    assert watch.exceeded
    assert (done.returncode, done.timed_out) == (137, False)
    calm = Watch(1 << 30)
    done = server.execute(
        ["true"], cwd=tmp_path, scratch=tmp_path, limits=LIMITS, box=box, timeout_s=25.0, wait=calm
    )
    assert (done.returncode, calm.exceeded) == (0, False)


def test_nobody_is_a_relative_because_the_forkserver_is_gone(
    server: Forkserver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = sleeping(server, tmp_path)
    gone = subprocess.Popen(["true"])
    gone.wait()
    with monkeypatch.context() as patched:
        patched.setattr(server, "_process", gone)
        assert worker.others() == []
    worker.kill()


def test_a_worker_whose_forkserver_is_gone_gives_its_descriptors_back(
    server: Forkserver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = descriptors()
    worker = sleeping(server, tmp_path)
    with monkeypatch.context() as patched:
        patched.setattr(server, "await_exit", mock.Mock(side_effect=HarnessError("the forkserver died")))
        with pytest.raises(HarnessError, match="forkserver died"):
            worker.kill()
    assert descriptors() == before
    worker.kill()  # once more does nothing


def test_a_worker_is_seen_stopped_and_resumed(server: Forkserver, tmp_path: Path) -> None:
    worker = sleeping(server, tmp_path)
    assert worker.settle() and worker.stopped and procfs.stands_still(worker.pid)
    worker.resume()
    assert worker.running
    worker.kill()
    assert not worker.running and worker.exit_code == 128 + signal.SIGKILL


def test_what_a_worker_started_elsewhere_is_stopped_with_it_and_runs_on_with_it(
    server: Forkserver, tmp_path: Path
) -> None:
    """A pool in a session of its own answers again, as long as its maker may run."""
    argv = ["sh", "-c", "setsid sleep 60 & wait"]
    worker = server._start(tmp_path, {"argv": argv, "cwd": str(tmp_path)}, None, None)
    worker._greeting(20.0)
    deadline = time.monotonic() + 20
    while not (others := worker.others()) and time.monotonic() < deadline:
        time.sleep(0.01)
    worker.stop()
    assert worker.stop_others() == len(others) == 1
    while not procfs.stands_still(others[0]) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert procfs.stands_still(others[0])
    worker.resume()
    while procfs.stands_still(others[0]) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not procfs.stands_still(others[0])
    worker.kill()


def test_a_helper_that_ends_its_first_thread_is_found_stopped_and_ended(
    server: Forkserver, tmp_path: Path
) -> None:
    end = "ctypes.CDLL(None).syscall(93 if os.uname().machine == 'aarch64' else 60, 0)"
    code = (
        "import ctypes, os, threading, time\n"
        "if os.fork() == 0:\n"
        "    os.setsid()\n"
        "    threading.Thread(target=time.sleep, args=(60,)).start()\n"
        f"    {end}\n"
        "time.sleep(60)"
    )
    worker = server._start(tmp_path, {"argv": [sys.executable, "-c", code], "cwd": str(tmp_path)}, None, None)
    worker._greeting(20.0)
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        others = worker.others()
        if others and procfs.stat_fields(others[0])[:1] == ["Z"]:
            break
        time.sleep(0.01)
    (helper,) = others
    assert procfs.stat_fields(helper)[0] == "Z"
    worker.stop()
    assert worker.stop_others() == 1
    while not procfs.stands_still(helper) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert procfs.stands_still(helper) and not procfs.is_zombie(helper)
    worker.kill()
    while not procfs.is_zombie(helper) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert procfs.is_zombie(helper)


LONG_READ = """
import os, time
with open("zeros", "w+b") as file:
    file.truncate(128 << 20)
    target = memoryview(bytearray(128 << 20))
    for _ in range(5000):
        print("begins", flush=True)
        os.preadv(file.fileno(), [target], 0)
"""
SPINS = """
import threading, time
def spin():
    while True: pass
threading.Thread(target=spin, daemon=True).start()
print("begins", flush=True)
time.sleep(60)
"""


@pytest.mark.parametrize(("code", "late"), [(LONG_READ, True), (SPINS, False)])
def test_work_between_the_stop_and_the_standstill_is_counted(
    server: Forkserver, tmp_path: Path, code: str, late: bool
) -> None:
    """A read of a file of zeros looks at no signal; a thread that spins is stopped at once."""
    extra = {"argv": [sys.executable, "-c", code], "cwd": str(tmp_path)}
    worker = server._start(tmp_path, extra, None, None)
    worker._greeting(20.0)
    deadline = time.monotonic() + 20
    while "begins" not in worker.log_tail() and time.monotonic() < deadline:
        time.sleep(0.001)
    seconds = []
    for _ in range(8):
        worker.resume()
        time.sleep(0.003)
        worker.stop()
        assert worker.settle()
        seconds.append(worker.late_s)
        assert worker.settle() and worker.late_s == seconds[-1]
    worker.kill()
    assert (max(seconds) > 0.01) is late, seconds


BUSY_IN_THE_KERNEL = """
import ctypes, os, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
setup, submit = (0, 2) if os.uname().machine == "aarch64" else (206, 209)
size, entries = 256 << 20, 400
with open("zeros", "w+b") as file:
    file.truncate(size)
    content = file.read()
    target = ctypes.create_string_buffer(size)
    # struct iocb: 20 bytes of zeros (opcode 0 is pread), descriptor, buffer, bytes, offset and more zeros
    block = struct.pack("=20xIQQ24x", file.fileno(), ctypes.addressof(target), size)
    blocks = ctypes.create_string_buffer(block * entries, 64 * entries)
    first = ctypes.addressof(blocks)
    pointers = (ctypes.c_void_p * entries)(*range(first, first + 64 * entries, 64))
    context = ctypes.c_ulong(0)
    if libc.syscall(setup, entries, ctypes.byref(context)):
        sys.exit(ctypes.get_errno())
    print("begins", flush=True)
    libc.syscall(submit, context, entries, pointers)
"""


def test_a_worker_that_works_while_it_is_stopped_is_noticed(server: Forkserver, tmp_path: Path) -> None:
    """Linux AIO runs its whole list before it looks at a signal. The sandboxes refuse it; here is none."""
    extra = {"argv": [sys.executable, "-c", BUSY_IN_THE_KERNEL], "cwd": str(tmp_path)}
    worker = server._start(tmp_path, extra, None, None)
    worker._greeting(20.0)
    while "begins" not in worker.log_tail():
        if worker.wait(0.05) is not None:
            pytest.skip(f"no Linux AIO here (error {worker.exit_code})")
    used = worker.cpu_seconds()
    while worker.running and worker.cpu_seconds() < used + 0.3:
        time.sleep(0.01)
    assert worker.running
    assert worker.settle() is False
    os.kill(worker.pid, signal.SIGKILL)
    (tmp_path / "zeros").write_bytes(b"")  # the reads that are left have nothing to copy
    worker.kill()


def test_all_pids_are_those_of_proc() -> None:
    assert os.getpid() in procfs.all_pids()
    assert procfs.namespace(os.getpid()) == str(Path("/proc/self/ns/pid").readlink())
    assert procfs.namespace(0) is None


def test_forkservers_of_one_parent_end_alone_and_with_it(tmp_path: Path) -> None:
    before = descriptors()
    parent = Forkserver(TORCH, None, tmp_path, worker_environment(1, tmp_path, {}))
    try:
        unused = Forkserver(COMPILED, None, tmp_path, {}, parent=parent)
        one = Forkserver(CANDIDATE, choose_sandbox("auto"), tmp_path, {}, parent=parent)
        other = Forkserver(EAGER, None, tmp_path, {"HERE": "alone"}, parent=parent)
        assert run(one, tmp_path, "true").returncode == 0
        said = run(other, tmp_path, sys.executable, "-c", "import os; print(os.environ['HERE'])")
        assert said.stderr == "alone\n"
        worker = sleeping(other, tmp_path)
        ended = one.start().pid
        one.close()
        unused.close()
        assert not procfs.descendants(ended) and worker.running
    finally:
        parent.close()
    deadline = time.monotonic() + 20
    while worker.running and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not worker.running
    other.close()
    assert descriptors() == before


def test_a_forkserver_that_still_imports_ends_at_once(tmp_path: Path) -> None:
    parent = Forkserver(TORCH, None, tmp_path, worker_environment(1, tmp_path, {}))
    begin = time.monotonic()
    parent.close()
    assert time.monotonic() - begin < 2.0


def test_a_parent_that_died_is_named(tmp_path: Path) -> None:
    parent = Forkserver(TORCH, None, tmp_path, worker_environment(1, tmp_path, {}))
    child = Forkserver(EAGER, None, tmp_path, {}, parent=parent)
    os.kill(parent.start().pid, signal.SIGKILL)
    with pytest.raises(HarnessError, match="torch forkserver did not start"):
        child.ready()
    child.close()
    parent.close()


def test_a_program_that_cannot_be_confined_is_not_its_own_failure(tmp_path: Path) -> None:
    confined = Forkserver("builder", Rlimits(), tmp_path, worker_environment(1, tmp_path, {}))
    gone = Box(tmp_path / "gone")  # not a folder to work in
    try:
        with pytest.raises(HarnessError, match=r"could not be confined \(.*No such file"):
            confined.execute(["true"], cwd=tmp_path, scratch=tmp_path, limits=LIMITS, box=gone, timeout_s=20)
        assert not confined._workers
    finally:
        confined.close()


def test_workers_have_descriptors_beyond_those_of_select(tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < 2048:
        pytest.skip("this user may not open so many files")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 2048), hard))
    opened = [os.open(os.devnull, os.O_RDONLY)]
    try:
        while opened[-1] < 1100:
            opened.append(os.open(os.devnull, os.O_RDONLY))
        server = Forkserver("builder", None, tmp_path, worker_environment(1, tmp_path, {}))
        try:
            worker = sleeping(server, tmp_path)
            assert worker.running
            worker.kill()
            assert not worker.running
            assert run(server, tmp_path, "true").returncode == 0
        finally:
            server.close()
    finally:
        for descriptor in opened:
            os.close(descriptor)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
