"""Run one function on the user's own model in a child process, and hear what became of it.

The supervisor never imports a user's model: an import may print, hang, exit, or take all memory. A child
process runs `module:function` with a JSON-able payload and answers on a pipe of its own (standard output
belongs to the user's code). The child dies with its parent, and Ctrl-C in the parent kills it.

This is for *trusted* code (the user's own files). Candidates go to the sandboxed worker.
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
from typing import IO, Any

import psutil

from agentforge.schema import (
    AgentForgeError,
    HarnessError,
    MachineError,
    StoreError,
    TargetError,
    UsageError,
)

Progress = Callable[[str], None]

_KNOWN_ERRORS: dict[str, type[AgentForgeError]] = {
    e.__name__: e for e in (AgentForgeError, HarnessError, MachineError, StoreError, TargetError, UsageError)
}
_GIB = 1 << 30


class ChildFailure(AgentForgeError):
    """The child did not return: it raised, timed out, ran out of memory or crashed.

    Attributes:
        kind: `raised`, `timeout`, `out_of_memory` or `crashed`.
        error_type: class name of the exception, for `raised` and, where known, `out_of_memory`.
        detail: the exception's message, or the tail of the child's standard error.
        traceback: the child's traceback, empty where it left none.
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
        task: `package.module:function`; called as `function(payload, report)`, where `report(text)`
            sends a progress line to the parent.
        payload: JSON-able argument.
        timeout_s: wall seconds before the child's process group is killed.
        memory_bytes: limit on the child's growth in address space after its imports; None takes what
            is free on the machine now, and 0 sets no limit (CUDA reserves huge address ranges).
        progress: receives the child's progress lines, in this thread.
        env: variables to add to this process's.

    Raises:
        ChildFailure: it did not return.
        AgentForgeError: what the task raised, if that is one of ours, with its class and message.
    """
    limit = available_memory() if memory_bytes is None else memory_bytes
    request = json.dumps({"task": task, "payload": payload, "memory_bytes": limit, "path": sys.path})
    read_end, write_end = os.pipe()
    with tempfile.TemporaryFile() as stderr, tempfile.TemporaryFile() as stdin:
        stdin.write(request.encode())
        stdin.seek(0)
        try:
            process = subprocess.Popen(
                [sys.executable, "-m", "agentforge.harness.child_main", str(write_end), str(os.getpid())],
                stdin=stdin,
                stdout=stderr,  # the user's prints must not spoil our --json
                stderr=stderr,
                pass_fds=(write_end,),
                start_new_session=True,
                env={**os.environ, **(env or {})},
            )
        except BaseException:
            os.close(read_end)
            raise
        finally:
            os.close(write_end)
        try:
            answer = _listen(read_end, time.monotonic() + timeout_s, progress)
            if answer is _TIMED_OUT:
                raise ChildFailure("timeout", f"no answer within {timeout_s:g} s")
            if answer is None:
                raise _death(process, stderr, limit)
            return _unpack(answer, limit)
        finally:
            os.close(read_end)
            _kill_group(process)


_TIMED_OUT: dict[str, Any] = {"timed_out": True}


def _listen(read_end: int, deadline: float, progress: Progress | None) -> dict[str, Any] | None:
    """The child's final message; None when the pipe closed without one."""
    for line in _lines(read_end, deadline):
        if line is None:
            return _TIMED_OUT
        message: dict[str, Any] = json.loads(line)
        if "progress" not in message:
            return message
        if progress is not None:
            progress(message["progress"])
    return None


def _lines(read_end: int, deadline: float) -> Iterator[bytes | None]:
    """Whole lines from a pipe until it closes; None once when the deadline passes."""
    buffer = b""
    with selectors.DefaultSelector() as selector:
        selector.register(read_end, selectors.EVENT_READ)
        while True:
            if not selector.select(max(0.0, deadline - time.monotonic())):
                yield None
                return
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
    """End the child and all it started; its session is its own, so nobody else's."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
