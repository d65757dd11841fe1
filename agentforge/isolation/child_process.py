"""Run one function on the user's own model in a child process.

The child runs `module:function` with a JSON-able payload and answers on its own pipe. It dies with its parent
and at Ctrl-C. For *trusted* code (the user's own files) only.
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any
from uuid import uuid4

import psutil

from agentforge.isolation.procfs import all_pids
from agentforge.schema import AgentForgeError, errors

Progress = Callable[[str], None]

_KNOWN_ERRORS: dict[str, type[AgentForgeError]] = {
    name: error
    for name, error in vars(errors).items()
    if isinstance(error, type) and issubclass(error, AgentForgeError)
}
"""Exceptions that a child's answer names by their class."""
_GIB = 1 << 30
_MARK = "AGENTFORGE_CHILD"
"""Environment variable that the child hands down to all it starts, also in sessions of their own."""
_SILENCE_S = 10.0
"""Seconds without a line from the child after which a progress line says that it still runs."""


class ChildFailure(AgentForgeError):
    """The child did not return.

    Attributes:
        kind: `raised`, `timeout`, `out_of_memory` or `crashed`.
        error_type: class name of the exception, if known.
        detail: the exception's message, or the tail of standard error.
        traceback: the child's, or empty.
    """

    def __init__(
        self, kind: str, message: str, *, error_type: str = "", detail: str = "", traceback: str = ""
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.error_type = error_type
        self.detail = detail
        self.traceback = traceback


def available_memory() -> int:
    """Bytes that a child may use now without driving the machine into the OOM killer."""
    return int(psutil.virtual_memory().available * 0.9)


def run_child(
    task: str,
    payload: Mapping[str, Any],
    *,
    timeout_s: float,
    memory_bytes: int | None = None,
    progress: Progress | None = None,
    env: Mapping[str, str] | None = None,
) -> Any:
    """Call `task` in a fresh Python process and return what it returns.

    Args:
        task: `package.module:function`, called with `(payload, report)`; `report(text)` sends a progress
            line.
        timeout_s: wall seconds before the child's process group is killed.
        memory_bytes: limit on the growth in address space after imports; None takes all free memory, 0 sets
            no limit (CUDA reserves huge ranges).

    Raises:
        ChildFailure: it did not return.
        AgentForgeError: raised by the task, with its class and message.
    """
    limit = available_memory() if memory_bytes is None else memory_bytes
    mark = uuid4().hex
    request = json.dumps({"task": task, "payload": payload, "memory_bytes": limit, "path": sys.path})
    read_end, write_end = os.pipe()
    with tempfile.TemporaryFile() as stderr, tempfile.TemporaryFile() as stdin:
        stdin.write(request.encode())
        stdin.seek(0)
        try:
            process = subprocess.Popen(
                [sys.executable, "-m", "agentforge.isolation.child_main", str(write_end), str(os.getpid())],
                stdin=stdin,
                stdout=stderr,  # the user's prints must not spoil our --json
                stderr=stderr,
                pass_fds=(write_end,),
                start_new_session=True,
                env={**os.environ, **(env or {}), _MARK: mark},
            )
        except BaseException:
            os.close(read_end)
            raise
        finally:
            os.close(write_end)
        try:
            answer = _listen(read_end, timeout_s, progress)
            if answer is _TIMED_OUT:
                raise ChildFailure("timeout", f"no answer within {timeout_s:g} s")
            if answer is None:
                raise _death(process, stderr, limit)
            return _unpack(answer, limit)
        finally:
            os.close(read_end)
            _kill_group(process)
            _kill_marked(mark)


_TIMED_OUT: dict[str, Any] = {"timed_out": True}


def _listen(read_end: int, timeout_s: float, progress: Progress | None) -> dict[str, Any] | None:
    """The child's final message; None when the pipe closed without one."""
    last = "starting"

    def waiting(seconds: float) -> None:
        if progress is not None:
            progress(f"still {last} after {seconds:.0f} s (limit {timeout_s:g} s, Ctrl-C stops it)")

    for line in _lines(read_end, timeout_s, waiting):
        if line is None:
            return _TIMED_OUT
        message: dict[str, Any] = json.loads(line)
        if "progress" not in message:
            return message
        last = message["progress"]
        if progress is not None:
            progress(last)
    return None


def _lines(read_end: int, timeout_s: float, waiting: Callable[[float], None]) -> Iterator[bytes | None]:
    """Whole lines from a pipe until it closes; None once when the time is over.

    `waiting` is called with the seconds since the start whenever the pipe was silent for `_SILENCE_S`.
    """
    buffer, started = b"", time.monotonic()
    with selectors.DefaultSelector() as selector:
        selector.register(read_end, selectors.EVENT_READ)
        while True:
            left = started + timeout_s - time.monotonic()
            if not selector.select(max(0.0, min(left, _SILENCE_S))):
                if left <= _SILENCE_S:
                    yield None
                    return
                waiting(time.monotonic() - started)
                continue
            chunk = os.read(read_end, 1 << 16)
            if not chunk:
                return
            *lines, buffer = (buffer + chunk).split(b"\n")
            yield from lines


def _unpack(answer: Mapping[str, Any], limit: int) -> Any:
    if "result" in answer:
        return answer["result"]
    name, message = answer["error"], answer["message"]
    if name in _KNOWN_ERRORS:
        raise _KNOWN_ERRORS[name](message)
    if answer["out_of_memory"]:
        raise _out_of_memory(limit, error_type=name, detail=message, traceback=answer["traceback"])
    raise ChildFailure(
        "raised", f"{name}: {message}", error_type=name, detail=message, traceback=answer["traceback"]
    )


def _death(process: subprocess.Popen[bytes], stderr: IO[bytes], limit: int) -> ChildFailure:
    """Why a child that said nothing is gone."""
    try:
        code = process.wait(timeout=10)
    except subprocess.TimeoutExpired:
        return ChildFailure("crashed", "it closed its answer pipe and went on running")
    stderr.seek(0)
    tail = stderr.read()[-4000:].decode(errors="replace").strip()
    if code == -signal.SIGKILL:
        return _out_of_memory(limit, detail=tail)
    if code < 0:
        name = signal.Signals(-code).name
        return ChildFailure("crashed", f"the process was killed by {name}", error_type=name, detail=tail)
    last = tail.splitlines()[-1] if tail else "it printed nothing"
    return ChildFailure("crashed", f"the process ended with exit code {code}: {last}", detail=tail)


def _out_of_memory(
    limit: int, *, error_type: str = "", detail: str = "", traceback: str = ""
) -> ChildFailure:
    free = f"{limit / _GIB:.1f} GiB" if limit else "the memory"
    return ChildFailure(
        "out_of_memory",
        f"it needs more memory than the {free} that is free here",
        error_type=error_type,
        detail=detail,
        traceback=traceback,
    )


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    """End the child and all it started; it has a session of its own."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _kill_marked(mark: str) -> None:
    """End what the child started in sessions of their own: it inherited the mark."""
    wanted = f"{_MARK}={mark}".encode()
    for pid in all_pids():
        with contextlib.suppress(OSError):
            if wanted in Path(f"/proc/{pid}/environ").read_bytes():
                os.kill(pid, signal.SIGKILL)
