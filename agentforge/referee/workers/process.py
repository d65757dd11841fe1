"""The referee's side of forkservers and workers: start, stop, continue, kill, find what they left running."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from agentforge.isolation import procfs
from agentforge.isolation.cgroups import MemoryGroup
from agentforge.isolation.sandboxes import Box, Limits, Sandbox
from agentforge.languages import CommandResult
from agentforge.schema import HarnessError

from ..candidates.jit_cache import cache_place
from .environment import PACKAGE_ROOT
from .protocol import Channel, ChannelClosed, ChannelTimeout, Message, ProtocolViolation, pair

_FORKSERVER = "agentforge.referee.workers.forkserver"
_START_TIMEOUT_S = 120.0
_LOG_TAIL = 16_384
_OUTPUT_TAIL = 4 << 20
_STANDSTILL_S, _WORKS_ON_S = 20.0, 1.0
"""Longest wait for a stopped worker to stand still, and processor time that is work in spite of the stop."""
_STARTER = ThreadPoolExecutor(1, "forkservers")
"""Starts forkservers. A child with a parent-death signal dies with the thread that started it; this thread
stays."""


def _signal_all(pids: Sequence[int], number: int) -> None:
    for pid in pids:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


class Worker:
    """A forked worker. Every wait has a deadline; `kill` ends it and all it started."""

    def __init__(self, number: int, channel: Channel, log: Path, server: Forkserver) -> None:
        self.number = number
        self.channel = channel
        self.warden = 0
        """Process that the forkserver forked: its end is the end of the worker's namespace."""
        self.pid = 0
        self.apart = False
        """Whether it has a namespace of processes of its own, which ends with it: another one than ours. The
        forkserver's cannot be read once it is dead."""
        self.exit_code: int | None = None
        self.stopped = False
        self.group: MemoryGroup | None = None
        """Limits and lists its processes, if this machine allows that."""
        self._log = log
        self._server = server
        self._pidfd = -1
        self._closed, self._others = False, list[int]()

    def _greeting(self, timeout_s: float, total_bytes: int = 0) -> None:
        for expected in ("warden", "worker"):
            message = self.channel.receive(timeout_s)
            if message.body.get("hello") != expected:
                raise ProtocolViolation("a worker that does not greet")
            if expected == "warden":
                self.warden = message.pid
                self.group = MemoryGroup.of(message.pid, total_bytes) if total_bytes else None
                self.channel.send({"go": True})
            else:
                self.pid = message.pid
        self.channel.forget_credentials()
        self.apart = procfs.namespace(self.pid) not in (None, procfs.namespace(os.getpid()))
        with suppress(OSError):
            self._pidfd = os.pidfd_open(self.pid)

    def request(self, body: Mapping[str, Any], fds: Sequence[int] = (), *, timeout_s: float) -> Message:
        """Send and wait for the answer.

        Raises:
            ChannelClosed, ChannelTimeout, ProtocolViolation
        """
        self.channel.send(body, fds)
        return self.channel.receive(timeout_s)

    def log_tail(self, nbytes: int = _LOG_TAIL) -> str:
        """The end of what the worker printed."""
        try:
            with self._log.open("rb") as file:
                file.seek(max(0, os.fstat(file.fileno()).st_size - nbytes))
                return file.read(nbytes).decode("utf-8", "replace")
        except OSError:
            return ""

    @property
    def running(self) -> bool:
        """Whether the worker's own process still runs."""
        if self._pidfd < 0:
            return False
        return not select.select([self._pidfd], [], [], 0)[0]

    def _signal_group(self, number: int) -> None:
        if self.pid and self.running:
            _signal_all([-self.pid], number)

    def stop(self) -> None:
        """SIGSTOP its process group: a worker runs only while it is asked something."""
        if not self.stopped:
            self._signal_group(signal.SIGSTOP)
            self.stopped = True

    def settle(self) -> bool:
        """Stop it and wait until its last thread has stopped.

        Returns:
            False if it works on, in a system call that no signal ends; waiting threads are not accused.
        """
        self.stop()
        begin, used = time.monotonic(), self.cpu_seconds()
        while not procfs.stands_still(self.pid):
            time.sleep(2e-5)
            waited = time.monotonic() - begin
            if waited > _WORKS_ON_S and self.cpu_seconds() - used > _WORKS_ON_S:
                return False
            if waited > _STANDSTILL_S or time.monotonic() > self.channel.deadline:
                break
        return True

    def stop_others(self) -> int:
        """SIGSTOP what it started outside of its process group, until it runs on; how many there are."""
        self._others = self.others()
        _signal_all(self._others, signal.SIGSTOP)
        return len(self._others)

    def resume(self) -> None:
        if self.stopped:
            self._signal_group(signal.SIGCONT)
            _signal_all(self._others, signal.SIGCONT)
            self._others, self.stopped = [], False

    def cpu_seconds(self) -> float:
        """CPU time of all threads of the worker, as the kernel counts it."""
        return procfs.cpu_seconds(self.pid)

    def resident_bytes(self) -> int:
        """Resident memory of the worker and all it started, shared pages counted for each process; 0 if a
        control group limits it."""
        if self.group is not None:
            return 0
        return sum(procfs.resident_bytes(pid) for pid in [self.pid, *self.others()])

    def others(self) -> list[int]:
        """Processes beside the worker's own: in its namespace, or below the process that started it."""
        return self._server.relatives(self)

    def end(self) -> None:
        """SIGKILL its process group; the thread that waits for its answer does the rest by `kill`."""
        self._signal_group(signal.SIGKILL)

    def hurry(self) -> None:
        """Give a worker in the background this process's priority, if that is allowed."""
        with suppress(OSError):
            os.setpriority(os.PRIO_PGRP, self.pid, os.getpriority(os.PRIO_PROCESS, 0))

    def kill(self) -> None:
        """End the worker and all it started; safe to call twice."""
        if self._closed:
            return
        strays = self.others()
        self._signal_group(signal.SIGKILL)
        if self.warden and self.exit_code is None:
            # A watcher ends its descendants first. In a namespace the kernel does that.
            watcher = not self.apart and self.warden != self.pid
            _signal_all([self.warden], signal.SIGTERM if watcher else signal.SIGKILL)
        _signal_all(strays, signal.SIGKILL)
        try:
            self.wait(5.0)
        finally:
            self.close()  # even if the forkserver is gone and cannot report the end

    def wait(self, timeout_s: float) -> int | None:
        """Exit code as the forkserver reports it (128 + signal), None if it does not end in time."""
        return self._server.await_exit(self, timeout_s)

    def close(self) -> None:
        self._closed = True
        self.channel.close()
        if self.group is not None:
            self.group.remove()
        if self._pidfd >= 0:
            os.close(self._pidfd)
            self._pidfd = -1
        with suppress(OSError):
            self._log.unlink()
        self._server.forget(self)


class Forkserver:
    """A process with torch imported, and the workers forked from it.

    Args:
        kind: `baseline` or `compiled-baseline` (trusted), `candidate`, a sanitizer, or `builder` (no torch).
        sandbox: confines the workers; None for trusted ones.
        open_memory: processes of this user may read the memory of trusted workers.
    """

    def __init__(
        self,
        kind: str,
        sandbox: Sandbox | None,
        folder: Path,
        environment: Mapping[str, str],
        readable: Sequence[Path] = (),
        *,
        prefix: Sequence[str] = (), open_memory: bool = False,
    ) -> None:  # fmt: skip
        self.kind = kind
        self._sandbox = sandbox
        self._folder = folder
        self._count = 0
        self._workers: dict[int, Worker] = {}
        self._lock = threading.Lock()
        self._control, theirs = pair()
        confined_by = sandbox.name if sandbox else "none"
        argv = [*prefix, sys.executable, "-m", _FORKSERVER, str(theirs.fileno()), kind, confined_by]
        argv.append(json.dumps(getattr(sandbox, "options", {}) if sandbox else {"open_memory": open_memory}))
        if sandbox is not None:
            argv = sandbox.wrap(argv, scratch=folder, readable=[*readable, PACKAGE_ROOT], env=environment)
        self._stderr = (folder / f"{kind}.log").open("w+b")
        self._process = _STARTER.submit(
            subprocess.Popen, argv, env=dict(environment), pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL, stdout=self._stderr, stderr=self._stderr, start_new_session=True,
        ).result()  # fmt: skip
        theirs.close()
        self._is_ready = False

    def ready(self) -> None:
        """Wait until what the workers need is imported.

        Raises:
            HarnessError: it did not start.
        """
        if self._is_ready:
            return
        try:
            self._control.receive(_START_TIMEOUT_S)
        except (ChannelClosed, ChannelTimeout, ProtocolViolation) as error:
            self._stderr.seek(0)
            tail = self._stderr.read()[-500:].decode("utf-8", "replace").strip().replace("\n", " | ")
            raise HarnessError(
                f"the referee's {self.kind} forkserver did not start ({tail or error})"
            ) from error
        self._is_ready = True

    def fork(
        self, scratch: Path, *, limits: Limits | None = None, box: Box | None = None,
        timeout_s: float = 30.0, background: bool = False, env: Mapping[str, str] | None = None,
    ) -> Worker:  # fmt: skip
        """A new worker, confined and ready for messages; with `background` of less priority than others.

        Args:
            env: variables beside the forkserver's.

        Raises:
            HarnessError: it could not be confined.
        """
        worker = self._start(scratch, {"background": background, "env": env or {}}, limits, box)
        try:
            worker._greeting(timeout_s, limits.total_bytes if limits else 0)
        except (ChannelClosed, ChannelTimeout, ProtocolViolation) as error:
            tail = worker.log_tail().strip().splitlines()[-1:]
            worker.kill()
            raise HarnessError(
                f"a {self.kind} worker could not be confined ({(tail or [str(error)])[0]})"
            ) from error
        return worker

    def _start(self, scratch: Path, extra: dict[str, Any], limits: Limits | None, box: Box | None) -> Worker:
        with self._lock:
            self.ready()
            self._count += 1
            number = self._count
        log = self._folder / f"{self.kind}-{number}.out"
        channel, theirs = pair(credentials=True)
        own = {"HOME": str(scratch), "TMPDIR": str(scratch)}
        if self._sandbox is not None:
            own |= {
                "TORCHINDUCTOR_CACHE_DIR": str(cache_place(scratch)),
                "CUPY_CACHE_DIR": str(cache_place(scratch) / "cupy"),
                "TRITON_CACHE_DIR": str(cache_place(scratch) / "triton"),
            }
        body = {"number": number, **extra, "env": {**own, **extra.get("env", {})}}
        if box is not None:
            body["box"] = {
                "scratch": str(box.scratch),
                "readable": [str(p) for p in box.readable],
                "writable": [str(p) for p in box.writable],
                "devices": [str(p) for p in box.devices],
                "loopback": box.loopback,
                "filtered": box.filtered,
                "identity": box.identity,
            }
        if limits is not None:
            body["limits"] = asdict(limits)
        descriptor = os.open(log, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        worker = Worker(number, channel, log, self)
        self._workers[number] = worker
        try:
            with self._lock:
                self._control.send(body, [theirs.fileno(), descriptor])
        except ChannelClosed as error:
            raise HarnessError(
                f"the referee's {self.kind} forkserver died; start the referee again"
            ) from error
        finally:
            theirs.close()
            os.close(descriptor)
        return worker

    def execute(
        self, argv: Sequence[str], *, cwd: Path, scratch: Path, limits: Limits, box: Box, timeout_s: float,
        env: Mapping[str, str] | None = None, background: bool = False,
        wait: Callable[[Worker, float], int | None] = Worker.wait,
    ) -> CommandResult:  # fmt: skip
        """Run a program in a confined worker; stdout and stderr come back together as stderr.

        It is ended when `wait` returns, which gives its exit code, or None if it takes too long.
        """
        begin = time.perf_counter()
        extra = {"argv": list(argv), "cwd": str(cwd), "background": background, "env": env or {}}
        worker = self._start(scratch, extra, limits, box)
        with suppress(ChannelClosed, ProtocolViolation, ChannelTimeout):
            worker._greeting(30.0, limits.total_bytes)
        code, output = wait(worker, timeout_s), worker.log_tail(_OUTPUT_TAIL)
        worker.kill()
        took = time.perf_counter() - begin
        return CommandResult(-1 if code is None else code, "", output, took, code is None)

    def await_exit(self, worker: Worker, timeout_s: float) -> int | None:
        """Read the forkserver's reports until this worker's has come. Several threads may wait."""
        deadline = time.monotonic() + timeout_s
        while worker.exit_code is None and time.monotonic() < deadline:
            with self._lock:
                if self._control.arrives(0.005):  # it may have received the next report with the last one
                    self._read_report()
        return worker.exit_code

    def _read_report(self) -> None:
        try:
            report = self._control.receive(1.0).body
        except (ChannelClosed, ChannelTimeout, ProtocolViolation) as error:
            raise HarnessError(
                f"the referee's {self.kind} forkserver died; start the referee again"
            ) from error
        ended = self._workers.get(report.get("exited", -1))
        if ended is not None:
            code = int(report["code"])
            ended.exit_code = code if code >= 0 else 128 - code

    def forget(self, worker: Worker) -> None:
        self._workers.pop(worker.number, None)

    def relatives(self, worker: Worker) -> list[int]:
        """Pids that belong to a worker, its wardens and itself left out."""
        if worker.group is not None:
            found = worker.group.pids()
        elif worker.apart:
            namespace = procfs.namespace(worker.pid)
            everything = procfs.all_pids() if namespace else []
            found = [pid for pid in everything if procfs.namespace(pid) == namespace]
        else:
            found = procfs.descendants(worker.warden) if worker.warden else []
        own = (worker.pid, worker.warden, procfs.namespace_init(worker.pid))
        return [pid for pid in found if pid not in own and not procfs.is_zombie(pid)]

    def close(self) -> None:
        """End all workers and the forkserver."""
        for worker in list(self._workers.values()):
            with suppress(HarnessError):
                worker.kill()
            self._workers.pop(worker.number, None)
        self._control.close()
        if not self._is_ready:
            self._process.kill()  # it would import torch to the end first
        try:
            self._process.wait(5.0)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._stderr.close()
