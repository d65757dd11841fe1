"""The process that forks the children of `child_process`, and its client.

It imports the module of each task before it forks the child, so the next child need not: importing torch
takes seconds. It runs no code of the user's, has one thread, and ends when its client hangs up.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import weakref
from contextlib import suppress
from typing import Any

from agentforge.isolation.child_task import read_request, run_task
from agentforge.isolation.watcher import fork_watched

_PROGRAM = "agentforge.isolation.child_main"
_PACKAGE = "agentforge."
"""Modules of tasks that are imported here. Others may be the user's."""
_MAX_MESSAGE = 1 << 16
_IDLE_S = 300.0
"""Seconds without a child after which the client ends it: it takes some 250 MB."""
_REPLY_S, _ENDING_S = 60.0, 0.5
"""Seconds for a reply. A server without other children is ended if ending one takes longer: it may be
importing, and Ctrl-C must not wait for that."""
_UNREAD = (
    "AGENTFORGE_", "PYTEST_",
    "CUBLAS_WORKSPACE_CONFIG", "DISABLE_CUPTI_LAZY_REINIT", "KMP_DUPLICATE_LIB_OK", "TEARDOWN_CUPTI",
    "TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR",
)  # fmt: skip
"""Beginnings of variables that no import reads: ours, and those that torch sets while it runs. If only these
change, the server stays."""


class ChildServer:
    """Client of a server; safe to call from several threads."""

    def __init__(self, control: socket.socket, process: subprocess.Popen[bytes] | None) -> None:
        self._control = control
        self._process = process
        self._owner = os.getpid()
        self._environment = _lasting_environment()
        self._lock = threading.Lock()
        self._numbers: set[int] = set()
        self._last = 0
        self._timer: threading.Timer | None = None
        self.close = weakref.finalize(self, _close, control, process, self._owner)

    @staticmethod
    def start() -> ChildServer:
        """A new server, which may still be starting."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            process = subprocess.Popen(
                [sys.executable, "-m", _PROGRAM, str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=(theirs.fileno(),),
                start_new_session=True,
                # A check for a GPU during an import must not initialise CUDA: children are forked afterwards.
                env={**os.environ, "PYTORCH_NVML_BASED_CUDA_CHECK": "1"},
            )
        return ChildServer(ours, process)

    def usable(self) -> bool:
        """Whether a child of it is as a process that this one would start now."""
        return (
            self.close.alive
            and self._owner == os.getpid()
            and self._environment == _lasting_environment()
            and (self._process is None or self._process.poll() is None)
        )

    def _reserve(self) -> int:
        with self._lock:
            if self._timer is not None:
                self._timer.cancel()
            self._last += 1
            self._numbers.add(self._last)
            return self._last

    def fork(self, number: int, module: str, request: int, output: int, answer: int, serves: bool) -> None:
        """Fork a child that has these descriptors. If the server is gone, they reach no process.

        Args:
            module: of its task.
            serves: it has a server for children of its own at once.
        """
        path = [entry for entry in sys.path if isinstance(entry, str)]  # an import skips others too
        message = {"fork": number, "module": module, "path": path, "serves": serves}
        folder = os.open(".", os.O_PATH | os.O_DIRECTORY)
        try:
            data = json.dumps(message).encode()
            with self._lock, suppress(OSError):
                socket.send_fds(self._control, [data], [request, output, answer, folder])
        finally:
            os.close(folder)

    def end(self, number: int, wait_s: float) -> int | None:
        """End a child and all that it started.

        Args:
            wait_s: seconds in which it may end by itself.

        Returns:
            Its exit code (128 + signal) if it ended by itself.
        """
        with self._lock:
            self._numbers.discard(number)
            try:
                self._control.settimeout(wait_s + (_REPLY_S if self._numbers else _ENDING_S))
                self._control.send(json.dumps({"end": number, "wait_s": wait_s}).encode())
                reply: dict[str, Any] = {}
                while reply.get("ended") != number:  # that of an interrupted call may come first
                    reply = json.loads(self._control.recv(_MAX_MESSAGE))
            except TimeoutError:
                self.close()
                return None
            except (OSError, ValueError):  # it is gone, and its children with it
                return self._lost()
            if not self._numbers:
                self._timer = threading.Timer(_IDLE_S, self._rest)
                self._timer.daemon = True
                self._timer.start()
        code = reply["code"]
        return code if code is None else int(code)

    def _lost(self) -> int:
        """The exit code of the children of a server that is gone."""
        code = -signal.SIGKILL
        if self._process is not None:
            with suppress(subprocess.TimeoutExpired):
                code = self._process.wait(1.0)
        self.close()
        return code if code >= 0 else 128 - code

    def _rest(self) -> None:
        with _choosing, self._lock:
            if not self._numbers:
                self.close()


_current: ChildServer | None = None
_choosing = threading.Lock()


def next_child() -> tuple[ChildServer, int]:
    """The server of this process, and the number of its next child, whose `end` must follow."""
    global _current
    with _choosing:
        if _current is None or not _current.usable():
            if _current is not None and not _current._numbers:
                _current.close()
            _current = ChildServer.start()
        return _current, _current._reserve()


def _lasting_environment() -> dict[str, str]:
    return {k: v for k, v in os.environ.items() if not k.startswith(_UNREAD)}


def _close(control: socket.socket, process: subprocess.Popen[bytes] | None, owner: int) -> None:
    control.close()
    if process is not None and owner == os.getpid():
        process.kill()  # it may be importing
        process.wait()


def serve(control: socket.socket) -> None:
    """Fork children until the client hangs up. Does not return."""
    children: dict[int, int] = {}
    control.set_inheritable(False)
    while True:
        data, fds, _, _ = socket.recv_fds(control, _MAX_MESSAGE, 4, socket.MSG_CMSG_CLOEXEC)
        if not data:
            os._exit(0)  # the watchers of the children end them
        message = json.loads(data)
        if "end" in message:
            pid = children.pop(message["end"], None)
            code = None if pid is None else _end(pid, message["wait_s"])
            with suppress(BrokenPipeError):
                control.send(json.dumps({"ended": message["end"], "code": code}).encode())
            continue
        sys.path[:] = message["path"]
        if message["module"].startswith(_PACKAGE):
            with suppress(Exception):  # the child says it
                importlib.import_module(message["module"])
            gc.freeze()  # otherwise each child copies all that was imported when it collects
        pid = os.fork()
        if not pid:
            control.close()
            _become_child(fds, message["serves"])
        children[message["fork"]] = pid
        for fd in fds:
            os.close(fd)


def _become_child(fds: list[int], serves: bool) -> None:
    """Run the task in a process below this one, which ends all that the task leaves."""
    request, output, answer, folder = fds
    try:
        for fd, standard in ((request, 0), (output, 1), (output, 2)):
            os.dup2(fd, standard)
        os.fchdir(folder)
        for fd in (request, output, folder):
            os.close(fd)
        fork_watched()
        task = read_request()
        if serves:
            _serve_below(answer)
        run_task(task, answer)
    finally:
        os._exit(1)


def _serve_below(answer: int) -> None:
    """Fork a server for the children of this child."""
    global _current
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    if not os.fork():
        os.close(answer)
        ours.close()
        serve(theirs)
    theirs.close()
    _current = ChildServer(ours, None)


def _end(pid: int, wait_s: float) -> int | None:
    """End a watcher and all below it; its exit code if it ended by itself."""
    deadline = time.monotonic() + wait_s
    while not (found := os.waitpid(pid, os.WNOHANG))[0] and time.monotonic() < deadline:
        time.sleep(0.005)
    if found[0]:
        return os.waitstatus_to_exitcode(found[1])
    os.kill(pid, signal.SIGTERM)
    os.waitpid(pid, 0)
    return None
