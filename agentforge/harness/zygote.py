"""The forkserver: what workers need is imported once, they are forked from it in milliseconds.

Run as `python -m agentforge.harness.zygote FD KIND SANDBOX`. It is single-threaded, runs no candidate code
itself, and ends when the referee closes its end of the control socket; its workers die with it.
"""

from __future__ import annotations

import os
import select
import signal
import socket
import sys
import tempfile
from pathlib import Path
from typing import Any

from . import linux
from ._base import Box, Limits, Sandbox, sandboxes
from .wire import Channel, ChannelClosed, Message

_PROGRAMS_ONLY = ("builder", "profiler")
"""Forkservers whose workers become other programs: they need no torch."""
_SETUP_FAILED = 97
"""Exit code of a worker that could not be confined."""


def box_from_json(value: dict[str, Any]) -> Box:
    """What the referee sent as a box."""
    return Box(
        scratch=Path(value["scratch"]),
        readable=tuple(map(Path, value["readable"])),
        writable=tuple(map(Path, value["writable"])),
        devices=tuple(map(Path, value["devices"])),
        loopback=value["loopback"],
        identity=value["identity"],
    )


class Zygote:
    """Forks workers on request and reports their ends."""

    def __init__(self, control: Channel, kind: str, sandbox: Sandbox | None) -> None:
        self._control = control
        self._kind = kind
        self._sandbox = sandbox
        self._workers: dict[int, int] = {}
        self._wake_read, self._wake_write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self._wake_write)

    def run(self) -> None:
        """Serve until the referee hangs up."""
        while True:
            readable, _, _ = select.select([self._control.fileno(), self._wake_read], [], [])
            if self._wake_read in readable:
                os.read(self._wake_read, 4096)
                self._reap()
            if self._control.fileno() in readable:
                try:
                    self._fork(self._control.receive())
                except ChannelClosed:
                    return

    def _reap(self) -> None:
        while self._workers:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            number = self._workers.pop(pid, None)
            if number is not None:
                self._control.send({"exited": number, "code": os.waitstatus_to_exitcode(status)})

    def _fork(self, message: Message) -> None:
        pid = os.fork()
        if pid == 0:
            try:
                self._become_worker(message)
            except Exception as error:
                os.write(2, f"{getattr(error, 'strerror', None) or error}\n".encode())
            finally:
                os._exit(_SETUP_FAILED)
        self._workers[pid] = message.body["number"]
        for fd in message.fds:
            os.close(fd)

    def _become_worker(self, message: Message) -> None:
        linux.die_with_parent()
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        os.setsid()
        body, (socket_fd, log_fd) = message.body, message.fds
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(log_fd, 1)
        os.dup2(log_fd, 2)
        channel = Channel(socket.socket(fileno=socket_fd), accept_fds=True)
        channel.send({"hello": "warden"})
        for key, value in body["env"].items():
            os.environ[key] = value
        tempfile.tempdir = None  # cached before the fork
        if self._sandbox is not None:
            self._sandbox.enter(
                Limits(**body["limits"]), keep_fds=[socket_fd], box=box_from_json(body["box"])
            )
            if os.getsid(0) != os.getpid():
                os.setsid()
        channel.send({"hello": "worker"})
        if "argv" in body:
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            os.chdir(body["cwd"])
            channel.close()
            os.execvpe(body["argv"][0], body["argv"], os.environ)
        self._serve(channel)

    def _serve(self, channel: Channel) -> None:
        if self._kind == "baseline":
            from .baseline import BaselineServer

            BaselineServer(channel).run()
        else:
            from .server import Server

            Server(channel).run()
        os._exit(0)


def _import_torch(kind: str) -> None:
    import torch

    torch.set_num_threads(1)
    if kind == "baseline":
        import torch._inductor.compile_fx

        from . import baseline  # noqa: F401
    from . import attestation, server  # noqa: F401

    # The first dispatch mode imports much of torch; pay once here. One element runs no thread pool.
    attestation.observe(torch.neg, (torch.ones(1),), {})


def main() -> None:
    """Import what the workers need, say so, serve."""
    control_fd, kind, sandbox_name = int(sys.argv[1]), sys.argv[2], sys.argv[3]
    os.set_inheritable(control_fd, False)
    linux.set_dumpable(False)
    if kind not in _PROGRAMS_ONLY:
        _import_torch(kind)
    control = Channel(socket.socket(fileno=control_fd), accept_fds=True)
    sandbox = None if sandbox_name == "none" else sandboxes.create(sandbox_name)
    control.send({"ready": kind})
    Zygote(control, kind, sandbox).run()


if __name__ == "__main__":
    main()
