"""The referee's side of forkservers and workers: start, stop, continue, kill, find what they left running."""

from __future__ import annotations

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

from agentforge.languages import CommandResult
from agentforge.schema import HarnessError

from . import procfs
from ._base import Box, Limits, Sandbox
from .compiled import cache_place
from .wire import Channel, ChannelClosed, ChannelTimeout, Message, ProtocolViolation, pair

_PACKAGE_ROOT = Path(__file__).resolve().parents[2]
_START_TIMEOUT_S = 120.0
_LOG_TAIL = 16_384
_OUTPUT_TAIL = 4 << 20
_STANDSTILL_S = 2.0
_KEPT = ("PATH", "LD_LIBRARY_PATH", "CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER")
"""Where programs and libraries lie, and which GPU is which."""
_STARTER = ThreadPoolExecutor(1, "forkservers")
"""Starts them: what is to die with its parent dies with the thread that started it, and this one stays."""


def worker_environment(threads: int, home: Path, extra: Mapping[str, str]) -> dict[str, str]:
    """The environment of every measured party: nothing of the user's but where programs and GPUs are."""
    kept = {k: os.environ[k] for k in _KEPT if k in os.environ}
    return {
        **kept,
        "LANG": "C.UTF-8",
        "HOME": str(home),
        "TMPDIR": str(home),
        "OMP_NUM_THREADS": str(threads),
        "MKL_NUM_THREADS": str(threads),
        "THP_MEM_ALLOC_ENABLE": "1",
        # Where glibc's moving thresholds end up in a process that lives long: a fresh worker would map
        # and fault its outputs anew on each call, and be several times slower than one that has not.
        "MALLOC_MMAP_THRESHOLD_": str(32 << 20),
        "MALLOC_TRIM_THRESHOLD_": str(512 << 20),
        "PYTHONHASHSEED": "0",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONPATH": str(_PACKAGE_ROOT),
        "TORCHINDUCTOR_COMPILE_THREADS": "1",
        # Asking whether there is a GPU must not begin to use it: workers are forked afterwards.
        "PYTORCH_NVML_BASED_CUDA_CHECK": "1",
        **extra,
    }


def baseline_cache(cache: Path) -> dict[str, str]:
    """Where the compiled baselines keep what Inductor built, beneath the referee's cache folder."""
    return {"TORCHINDUCTOR_CACHE_DIR": str(cache / "inductor")}


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
        self._log = log
        self._server = server
        self._pidfd = -1
        self._closed = False

    def _greeting(self, timeout_s: float) -> None:
        for expected in ("warden", "worker"):
            message = self.channel.receive(timeout_s)
            if message.body.get("hello") != expected:
                raise ProtocolViolation("a worker that does not greet")
            if expected == "warden":
                self.warden = message.pid
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
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, number)

    def stop(self) -> None:
        """SIGSTOP its process group: a worker runs only while it is asked something.

        No spinning thread of it disturbs who is timed, and none works before or after its call.
        """
        if not self.stopped:
            self._signal_group(signal.SIGSTOP)
            self.stopped = True

    def settle(self) -> None:
        """Stop it and wait until its last thread stands still."""
        self.stop()
        deadline = time.monotonic() + _STANDSTILL_S
        while not procfs.stands_still(self.pid) and time.monotonic() < deadline:
            time.sleep(2e-5)

    def stop_others(self) -> int:
        """SIGSTOP what it started outside of its process group; how many there are."""
        others = self.others()
        for pid in others:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGSTOP)
        return len(others)

    def resume(self) -> None:
        if self.stopped:
            self._signal_group(signal.SIGCONT)
            self.stopped = False

    def cpu_seconds(self, others: Sequence[int]) -> float:
        """CPU time of all threads of the worker and `others`, as the kernel counts it."""
        return sum(procfs.cpu_seconds(pid) for pid in [self.pid, *others])

    def resident_bytes(self) -> int:
        """Resident memory of the worker and its children, shared pages counted for each."""
        return sum(procfs.resident_bytes(pid) for pid in [self.pid, *self.others()])

    def others(self) -> list[int]:
        """Processes beside the worker's own that live in its namespace, session or under its user id."""
        return self._server.relatives(self)

    def kill(self) -> None:
        """End the worker and all it started; safe to call twice."""
        if self._closed:
            return
        strays = self.others()
        self._signal_group(signal.SIGKILL)
        if self.warden and self.exit_code is None:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(self.warden, signal.SIGKILL)
        for stray in strays:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(stray, signal.SIGKILL)
        try:
            self.wait(5.0)
        finally:
            self.close()  # also where the forkserver is gone and nobody tells of the end

    def wait(self, timeout_s: float) -> int | None:
        """Exit code as the forkserver reports it (128 + signal), None where it does not end in time."""
        return self._server.await_exit(self, timeout_s)

    def close(self) -> None:
        self._closed = True
        self.channel.close()
        if self._pidfd >= 0:
            os.close(self._pidfd)
            self._pidfd = -1
        with suppress(OSError):
            self._log.unlink()
        self._server.forget(self)


class Forkserver:
    """A zygote process with torch imported, and the workers forked from it.

    Args:
        kind: `baseline` (trusted, no sandbox), `candidate`, a sanitizer, or `builder`, which has no torch and
            forks several times as fast: for compilers.
        sandbox: what holds the workers; None for trusted ones.
        folder: for logs and scratch folders; the caller removes it.
        environment: of the zygote and all its workers.
        readable: what the workers may see beside the system.
        prefix: command that runs the interpreter.
    """

    def __init__(
        self,
        kind: str,
        sandbox: Sandbox | None,
        folder: Path,
        environment: Mapping[str, str],
        readable: Sequence[Path] = (),
        *,
        prefix: Sequence[str] = (),
    ) -> None:
        self.kind = kind
        self._sandbox = sandbox
        self._folder = folder
        self._count = 0
        self._workers: dict[int, Worker] = {}
        self._identities: dict[int, int] = {}
        self._lock = threading.Lock()
        self._control, theirs = pair()
        argv = [*prefix, sys.executable, "-m", "agentforge.harness.zygote", str(theirs.fileno()), kind,
                sandbox.name if sandbox else "none"]  # fmt: skip
        if sandbox is not None:
            argv = sandbox.wrap(argv, scratch=folder, readable=[*readable, _PACKAGE_ROOT], env=environment)
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
        self, scratch: Path, *, limits: Limits | None = None, box: Box | None = None, timeout_s: float = 30.0
    ) -> Worker:
        """A new worker, confined and ready for messages.

        Raises:
            HarnessError: it could not be confined.
        """
        worker = self._start(scratch, {}, limits, box)
        try:
            worker._greeting(timeout_s)
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
                "TRITON_CACHE_DIR": str(cache_place(scratch) / "triton"),
            }
        body = {"number": number, "env": own, **extra}
        if box is not None:
            body["box"] = {
                "scratch": str(box.scratch),
                "readable": [str(p) for p in box.readable],
                "writable": [str(p) for p in box.writable],
                "devices": [str(p) for p in box.devices],
                "loopback": box.loopback,
                "identity": box.identity,
            }
            self._identities[number] = box.identity
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
        self,
        argv: Sequence[str],
        *,
        cwd: Path,
        scratch: Path,
        limits: Limits,
        box: Box,
        timeout_s: float,
        env: Mapping[str, str] | None = None,
        wait: Callable[[Worker, float], int | None] = Worker.wait,
    ) -> CommandResult:
        """Run a program in a confined worker; stdout and stderr come back together as stderr.

        It is ended when `wait` returns, which gives its exit code, or None where it takes too long.
        """
        begin = time.perf_counter()
        extra: dict[str, Any] = {"argv": list(argv), "cwd": str(cwd)}
        if env:
            extra["env"] = {"HOME": str(scratch), "TMPDIR": str(scratch), **env}
        worker = self._start(scratch, extra, limits, box)
        with suppress(ChannelClosed, ProtocolViolation, ChannelTimeout):
            worker._greeting(30.0)
        code = wait(worker, timeout_s)
        timed_out = code is None
        output = worker.log_tail(_OUTPUT_TAIL)
        worker.kill()
        seconds = time.perf_counter() - begin
        return CommandResult(-1 if code is None else code, "", output, seconds, timed_out)

    def await_exit(self, worker: Worker, timeout_s: float) -> int | None:
        """Read the forkserver's reports until this worker's has come. Several threads may wait."""
        deadline = time.monotonic() + timeout_s
        while worker.exit_code is None and time.monotonic() < deadline:
            with self._lock:
                if select.select([self._control], [], [], 0.005)[0]:
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
        self._identities.pop(worker.number, None)

    def relatives(self, worker: Worker) -> list[int]:
        """Pids that belong to a worker, its wardens and itself left out."""
        namespace = procfs.namespace(worker.pid)
        if worker.apart and namespace is None:
            return []
        init = procfs.namespace_init(worker.pid) if worker.apart else 0
        identity = self._identities.get(worker.number, 0)
        found = []
        for pid in procfs.all_pids():
            if pid in (worker.pid, worker.warden, init):
                continue
            if worker.apart:
                related = procfs.namespace(pid) == namespace
            else:
                # A worker that never greeted has neither: 0 is the session of processes outside of ours.
                related = procfs.session(pid) in {worker.pid, worker.warden} - {0} or bool(
                    identity and procfs.owner(pid) == identity
                )
            if related and not procfs.is_zombie(pid):
                found.append(pid)
        return found

    def close(self) -> None:
        """End all workers and the zygote."""
        for worker in list(self._workers.values()):
            with suppress(HarnessError):
                worker.kill()
            self._workers.pop(worker.number, None)
        self._control.close()
        try:
            self._process.wait(5.0)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._stderr.close()
