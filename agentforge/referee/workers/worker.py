"""A worker as the referee sees it: stop it, let it run on, kill it, find what it left running."""

from __future__ import annotations

import os
import select
import signal
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

from agentforge.isolation import linux, procfs
from agentforge.isolation.cgroups import MemoryGroup

from .protocol import Channel, Message, ProtocolViolation

_LOG_TAIL = 16_384
_STANDSTILL_S, _WORKS_ON_S = 20.0, 1.0
"""Longest wait for a stopped worker to stand still, and processor time that is work in spite of the stop."""


def _signal_all(pids: Sequence[int], number: int) -> None:
    for pid in pids:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


class Parent(Protocol):
    """What a worker asks of the forkserver that forked it."""

    def relatives(self, worker: Worker) -> list[int]:
        """Pids that belong to a worker, its wardens and itself left out."""
        ...

    def await_exit(self, worker: Worker, timeout_s: float) -> int | None:
        """Its exit code, None if it does not end in time."""
        ...

    def forget(self, worker: Worker) -> None:
        """It has ended."""
        ...


class Worker:
    """A forked worker. Every wait has a deadline; `kill` ends it and all it started."""

    def __init__(self, number: int, channel: Channel, log: Path, server: Parent) -> None:
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
        self.late_s = 0.0
        """Processor time that it used after its last stop, as far as `settle` has waited for it."""

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
        ended = select.poll()  # of its own, as several threads ask; select(2) knows no descriptor above 1023
        ended.register(self._pidfd, select.POLLIN)
        return not ended.poll(0)

    def _signal_group(self, number: int) -> None:
        if self.pid and self.running:
            _signal_all([-self.pid], number)

    def stop(self) -> None:
        """SIGSTOP its process group: a worker runs only while it is asked something.

        A thread that waits for a processor, and is chosen to take the signal, would let the others run on
        meanwhile. So each thread gets it.
        """
        if not self.stopped:
            self._signal_group(signal.SIGSTOP)
            for thread in procfs.threads(self.pid) if self.running else ():
                with suppress(OSError):
                    linux.signal_thread(self.pid, thread, signal.SIGSTOP)
            self.stopped, self.late_s = True, 0.0

    def settle(self) -> bool:
        """Stop it and wait until its last thread has stopped.

        Returns:
            False if it works on, in a system call that no signal ends; waiting threads are not accused.
        """
        self.stop()
        begin, used = time.monotonic(), -1.0
        while not procfs.stands_still(self.pid):
            time.sleep(2e-5)
            now, waited = procfs.cpu_seconds(self.pid), time.monotonic() - begin
            used = now if used < 0 else used  # the kernel counts a running thread's time when it stops
            if waited > _WORKS_ON_S and now - used > _WORKS_ON_S:
                return False
            if waited > _STANDSTILL_S or time.monotonic() > self.channel.deadline:
                break
        if used >= 0:
            self.late_s += max(0.0, procfs.cpu_seconds(self.pid) - used)
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
        """CPU time of all threads of the worker, and of its children that have ended."""
        return procfs.cpu_seconds(self.pid) + procfs.ended_children_seconds(self.pid)

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
