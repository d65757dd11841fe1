"""The referee's side of a forkserver: start it, have it fork workers, hear of their ends."""

from __future__ import annotations

import json
import os
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
from agentforge.isolation.sandboxes import Box, Limits, Sandbox
from agentforge.languages import CommandResult
from agentforge.schema import HarnessError

from ..candidates.jit_cache import cache_place
from .protocol import Channel, ChannelClosed, ChannelTimeout, ProtocolViolation, pair
from .worker import Worker

_FORKSERVER = "agentforge.referee.workers.forkserver"
_START_TIMEOUT_S, _GREETING_S = 120.0, 30.0
_OUTPUT_TAIL = 4 << 20
_STARTER = ThreadPoolExecutor(1, "forkservers")
"""Starts forkservers. A child with a parent-death signal dies with the thread that started it; this thread
stays."""


class _Program:
    """A forkserver's process that is started as a program, with its end of the control socket."""

    def __init__(
        self, command: Sequence[str], options: dict[str, Any], folder: Path, environment: Mapping[str, str]
    ) -> None:
        self.channel, theirs = pair()
        self._log = (folder / f"{options['kind']}.log").open("w+b")
        argv = [*command, str(theirs.fileno()), json.dumps(options)]
        self._popen = _STARTER.submit(
            subprocess.Popen, argv, env=dict(environment), pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL, stdout=self._log, stderr=self._log, start_new_session=True,
        ).result()  # fmt: skip
        theirs.close()
        self.pid = self._popen.pid

    def log_tail(self, nbytes: int) -> str:
        """The end of what it printed."""
        self._log.seek(0)
        return self._log.read()[-nbytes:].decode("utf-8", "replace")

    def kill(self) -> None:
        """End it, and with it all below it; safe to call twice."""
        self.channel.close()
        self._popen.kill()
        self._popen.wait()
        self._log.close()


class Forkserver:
    """A process with torch imported, and the workers forked from it.

    Args:
        kind: `torch` or `compiler` (their workers are forkservers), `baseline` or `compiled-baseline`
            (trusted), `candidate` or `compiling-candidate`, a sanitizer, or `builder` and `profiler`, which
            have no torch.
        sandbox: confines the workers; None for trusted ones.
        environment: all its variables, or those that differ from its parent's.
        prefix: words before the command that starts it.
        open_memory: processes of this user may read the memory of trusted workers.
        parent: a forkserver of forkservers that outlives this one.
    """

    def __init__(
        self,
        kind: str,
        sandbox: Sandbox | None,
        folder: Path,
        environment: Mapping[str, str],
        *,
        prefix: Sequence[str] = (), open_memory: bool = False, parent: Forkserver | None = None,
    ) -> None:  # fmt: skip
        self.kind = kind
        self._sandbox = sandbox
        self._folder = folder
        self._count = 0
        self._workers: dict[int, Worker] = {}
        self._lock = threading.RLock()
        self._is_ready = False
        self._options = {
            "kind": kind,
            "sandbox": sandbox.name if sandbox else "",
            "sandbox_options": getattr(sandbox, "options", {}),
            "open_memory": open_memory,
        }
        self._environment = dict(environment)
        self._parent = parent
        self._process: _Program | Worker | None = None
        if parent is None:
            command = [*prefix, sys.executable, "-m", _FORKSERVER]
            self._process = _Program(command, self._options, folder, self._environment)

    def start(self) -> _Program | Worker:
        """Begin to import what the workers need. Waits for a parent until it is ready.

        Raises:
            HarnessError: its parent did not start.
        """
        with self._lock:
            if self._process is None:
                assert self._parent is not None
                self._process = self._parent.fork(self._folder, env=self._environment)
                self._process.channel.send(self._options)
            return self._process

    @property
    def _control(self) -> Channel:
        return self.start().channel

    def ready(self) -> None:
        """Wait until what the workers need is imported.

        Raises:
            HarnessError: it did not start.
        """
        with self._lock:
            if self._is_ready:
                return
            process = self.start()
            try:
                process.channel.receive(_START_TIMEOUT_S)
            except (ChannelClosed, ChannelTimeout, ProtocolViolation) as error:
                tail = process.log_tail(500).strip().replace("\n", " | ")
                raise HarnessError(
                    f"the referee's {self.kind} forkserver did not start ({tail or error})"
                ) from error
            self._is_ready = True

    def fork(
        self, scratch: Path, *, limits: Limits | None = None, box: Box | None = None,
        timeout_s: float = _GREETING_S, background: bool = False, env: Mapping[str, str] | None = None,
    ) -> Worker:  # fmt: skip
        """A new worker, confined and ready for messages; with `background` of less priority than others.

        Args:
            env: variables beside the forkserver's.

        Raises:
            HarnessError: it could not be confined.
        """
        worker = self._start(scratch, {"background": background, "env": env or {}}, limits, box)
        self._greeted(worker, timeout_s, limits.total_bytes if limits else 0)
        return worker

    def _greeted(self, worker: Worker, timeout_s: float, total_bytes: int) -> None:
        """Wait until a worker is confined.

        Raises:
            HarnessError: it could not be.
        """
        try:
            worker._greeting(timeout_s, total_bytes)
        except (ChannelClosed, ChannelTimeout, ProtocolViolation) as error:
            tail = worker.log_tail().strip().splitlines()[-1:]
            worker.kill()
            raise HarnessError(
                f"a {self.kind} worker could not be confined ({(tail or [str(error)])[0]})"
            ) from error

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
            body["box"] = box.to_json()
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

        Raises:
            HarnessError: it could not be confined.
        """
        begin = time.perf_counter()
        extra = {"argv": list(argv), "cwd": str(cwd), "background": background, "env": env or {}}
        worker = self._start(scratch, extra, limits, box)
        self._greeted(worker, _GREETING_S, limits.total_bytes)
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
        if self._process is not None:
            with suppress(HarnessError):  # its parent died, and it with it
                self._process.kill()
