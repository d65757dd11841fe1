"""The forkserver: what workers need is imported once, they are forked from it in milliseconds.

Run as `python -m agentforge.referee.workers.forkserver FD OPTIONS`. It is single-threaded, runs no candidate
code, and ends with its workers when the control socket closes. The workers of one of the kind `torch` are
forkservers themselves, so that torch is imported once for all of them; so are those of `compiler`.
"""

from __future__ import annotations

import gc
import json
import os
import select
import signal
import socket
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

from agentforge.devices import devices, gpu_present
from agentforge.isolation import linux
from agentforge.isolation.sandboxes import Box, Limits, Sandbox, sandboxes
from agentforge.isolation.watcher import end_descendants

from . import headers
from .environment import raise_thresholds
from .protocol import Channel, ChannelClosed, Message

_PROGRAMS_ONLY = ("builder", "profiler")
"""Forkservers whose workers become other programs: they need no torch."""
TORCH, COMPILER = "torch", "compiler"
"""Forkservers of forkservers; those of the second one inherit a torch.compile that is ready."""
EAGER, COMPILED = "baseline", "compiled-baseline"
"""Forkservers of trusted workers; the second one is the compiler's."""
CANDIDATE, COMPILING = "candidate", "compiling-candidate"
"""Forkservers of candidates that are timed; the second one is the compiler's."""
BASELINES = (EAGER, COMPILED)
_LESS_PRIORITY = 10
"""Added to the niceness of what runs beside checks, whose threads wait for one another."""
_SETUP_FAILED = 97
"""Exit code of a worker that could not be confined."""


class ForkserverLoop:
    """Forks workers on request and reports their ends."""

    def __init__(self, control: Channel, kind: str, sandbox: Sandbox | None, open_memory: bool) -> None:
        self._control = control
        self._kind = kind
        self._sandbox = sandbox
        self._open_memory = open_memory
        self._workers: dict[int, int] = {}
        self._wake_read, self._wake_write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self._wake_write)

    def run(self) -> None:
        """Serve until the referee hangs up."""
        poll = select.poll()  # select(2) knows no descriptor above 1023
        for descriptor in (self._control.fileno(), self._wake_read):
            poll.register(descriptor, select.POLLIN)
        while True:
            readable = {descriptor for descriptor, _ in poll.poll()}
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
                # What it left behind has become a child of this process.
                end_descendants(spared=list(self._workers), timeout_s=2.0)
                self._control.send({"exited": number, "code": os.waitstatus_to_exitcode(status)})

    def _fork(self, message: Message) -> None:
        parent = os.getpid()
        pid = os.fork()
        if pid == 0:
            try:
                linux.die_with_parent()
                if os.getppid() == parent:  # otherwise it died before the kernel knew
                    self._become_worker(message)
            except Exception as error:
                os.write(2, f"{getattr(error, 'strerror', None) or error}\n".encode())
            finally:
                os._exit(_SETUP_FAILED)
        self._workers[pid] = message.body["number"]
        for fd in message.fds:
            os.close(fd)

    def _become_worker(self, message: Message) -> None:
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
        channel.receive()  # now it has the limits that are set from outside
        for key, value in body["env"].items():
            os.environ[key] = value
        tempfile.tempdir = None  # cached before the fork
        if body.get("background"):
            os.nice(_LESS_PRIORITY)
        if self._sandbox is not None:
            box = Box.from_json(body["box"])
            self._sandbox.enter(Limits(**body["limits"]), keep_fds=[socket_fd], box=box)
            if os.getsid(0) != os.getpid():
                os.setsid()
        elif self._open_memory:
            linux.set_dumpable(True)
        channel.send({"hello": "worker"})
        if "argv" in body:
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            os.chdir(body["cwd"])
            channel.close()
            os.execvpe(body["argv"][0], body["argv"], os.environ)
        self._serve(channel)

    def _serve(self, channel: Channel) -> None:
        if self._kind in (TORCH, COMPILER):
            os.close(self._wake_read)
            os.close(self._wake_write)
            self._control.close()
            serve(channel, channel.receive().body)
        elif self._kind in BASELINES:
            from ..baselines.reference_worker import BaselineServer

            BaselineServer(channel).run()
        else:
            from .server import Server

            Server(channel).run()
        os._exit(0)


def _import_for(kind: str) -> None:
    if kind in _PROGRAMS_ONLY:
        return
    if "torch" not in sys.modules:
        _import_torch()
    if kind == COMPILER:
        _warm_compiler()
    if kind in BASELINES:
        from ..baselines import reference_worker as baseline  # noqa: F401
    gc.freeze()  # otherwise each worker walks, and copies, all that was imported when it collects


def _import_torch() -> None:
    import torch

    torch.set_num_threads(1)
    from ..candidates import attestation  # noqa: F401
    from . import server  # noqa: F401

    list(devices.working(devices.plugins()))  # a confined worker can no longer read AgentForge's files
    raise_thresholds()  # workers inherit them


def _warm_compiler() -> None:
    """Import and probe what a first torch.compile needs; each worker would spend seconds on it."""
    import torch
    import torch._inductor.compile_fx

    # For the number of threads that is timed: workers with others use the same code.
    torch._inductor.config.cpp.threads = int(os.environ["OMP_NUM_THREADS"])
    if folder := os.environ.get(headers.VARIABLE):
        headers.keep_headers_in(Path(folder))
    # Compiling may initialise CUDA, and torch.cuda.is_available() NVML. Neither survives a fork.
    if torch.version.cuda and gpu_present():
        return
    with suppress(Exception), torch.no_grad():  # a baseline that cannot be compiled says why itself
        torch.compile(torch.neg)(torch.ones(1))


def serve(control: Channel, options: dict[str, Any]) -> None:
    """Import what the workers need, say so, fork them until the referee hangs up."""
    linux.become_subreaper()
    kind, name = options["kind"], options["sandbox"]
    linux.set_name(kind)
    _import_for(kind)
    sandbox = sandboxes.create(name, options=options["sandbox_options"]) if name else None
    control.send({"ready": kind})
    ForkserverLoop(control, kind, sandbox, options["open_memory"]).run()
    # Unloading torch takes a second, for which the referee would wait; there is nothing to save.
    os._exit(0)


def main() -> None:
    """A forkserver that is started as a program."""
    control_fd, options = int(sys.argv[1]), json.loads(sys.argv[2])
    os.set_inheritable(control_fd, False)
    os.umask(0o022)  # what it makes for a candidate is another user's, if root runs it
    linux.set_dumpable(False)
    linux.die_with_parent()
    serve(Channel(socket.socket(fileno=control_fd), accept_fds=True), options)


if __name__ == "__main__":
    main()
