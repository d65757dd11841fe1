"""Run one function on the user's own model in a child process.

The child runs `module:function` with a JSON-able payload and answers on its own pipe. It and all that it
starts end with the call, at Ctrl-C, and with the caller. For *trusted* code (the user's own files) only.
"""

from __future__ import annotations

import json
import os
import selectors
import signal
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from typing import IO, Any

from agentforge.isolation import procfs
from agentforge.isolation.child_server import next_child
from agentforge.limits import free_memory
from agentforge.schema import AgentForgeError, TimeEnded, errors

Progress = Callable[[str], None]

_KNOWN_ERRORS: dict[str, type[AgentForgeError]] = {
    name: error
    for name, error in vars(errors).items()
    if isinstance(error, type) and issubclass(error, AgentForgeError)
}
"""Exceptions that a child's answer names by their class."""
_GIB = 1 << 30
_ENDING_S = 10.0
"""Seconds for a child that answered, or closed its answer pipe, to end by itself."""
_SILENCE_S = 10.0
"""Seconds without a line from the child after which a progress line says that it still runs."""


class ChildFailure(AgentForgeError):
    """The child did not return.

    Attributes:
        kind: `raised`, `timeout`, `out_of_memory` or `crashed`.
        starved: it took too long and had to wait for processors.
        error_type: class name of the exception, if known.
        detail: the exception's message, or the tail of standard error.
        traceback: the child's, or empty.
    """

    starved = False

    def __init__(
        self, kind: str, message: str, *, error_type: str = "", detail: str = "", traceback: str = ""
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.error_type = error_type
        self.detail = detail
        self.traceback = traceback


def available_memory() -> int:
    """Bytes that a child may use now without driving the machine, or a control group, into the OOM killer."""
    return max(1, int(free_memory() * 0.9))


def run_child(
    task: str,
    payload: Mapping[str, Any],
    *,
    timeout_s: float,
    end: float | None = None,
    memory_bytes: int | None = None,
    progress: Progress | None = None,
    env: Mapping[str, str] | None = None,
    serves: bool = False,
) -> Any:
    """Call `task` in a process of its own and return what it returns.

    Args:
        task: `package.module:function`, called with `(payload, report)`; `report(text)` sends a progress
            line.
        timeout_s: wall seconds before the child and all that it started are ended.
        end: monotonic time at which they are ended in any case; None for no other limit.
        memory_bytes: limit on the growth in address space after imports; None takes all free memory, 0 sets
            no limit (CUDA reserves huge ranges).
        env: variables that are set after the task's module is imported.
        serves: the task has children of its own; they need not import what it has.

    Raises:
        ChildFailure: it did not return.
        TimeEnded: `end` came first.
        AgentForgeError: raised by the task, with its class and message.
    """
    limit = available_memory() if memory_bytes is None else memory_bytes
    left_s = timeout_s if end is None else min(timeout_s, end - time.monotonic())
    if left_s <= 0:
        raise TimeEnded(f"the run's time ended before {task} began")
    environment = {**os.environ, **(env or {})}
    request = json.dumps({"task": task, "payload": payload, "memory_bytes": limit, "env": environment})
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as stdin:
        stdin.write(request.encode())
        stdin.seek(0)
        server, number = next_child()
        read_end, write_end = os.pipe()
        answer: dict[str, Any] | None = _TIMED_OUT
        try:
            try:
                # The user's prints must not spoil our --json.
                files = stdin.fileno(), output.fileno(), write_end
                server.fork(number, task.partition(":")[0], *files, serves=serves)
            finally:
                os.close(write_end)
            answer = _listen(read_end, left_s, progress)
            starved = answer is _TIMED_OUT and procfs.starved(procfs.descendants(os.getpid()))
        finally:
            os.close(read_end)
            code = server.end(number, 0.0 if answer is _TIMED_OUT else _ENDING_S)
        if answer is _TIMED_OUT and left_s < timeout_s:
            raise TimeEnded(f"the run's time ended in the middle of {task}")
        if answer is _TIMED_OUT:
            failure = ChildFailure("timeout", f"no answer within {timeout_s:g} s")
            failure.starved = starved
            raise failure
        if answer is None:
            raise _death(code, output, limit)
        return _unpack(answer, limit)


_TIMED_OUT: dict[str, Any] = {"timed_out": True}


def _listen(read_end: int, timeout_s: float, progress: Progress | None) -> dict[str, Any] | None:
    """The child's final message; None when the pipe closed without one."""
    last = "starting"

    def waiting(seconds: float) -> None:
        if progress is not None:
            progress(f"still {last}; {seconds:.0f} of at most {timeout_s:.0f} s are over, Ctrl-C stops it")

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


def _death(code: int | None, output: IO[bytes], limit: int) -> ChildFailure:
    """Why a child that said nothing is gone."""
    if code is None:
        return ChildFailure("crashed", "it closed its answer pipe and went on running")
    output.seek(0)
    tail = output.read()[-4000:].decode(errors="replace").strip()
    if code == 128 + signal.SIGKILL:
        return _out_of_memory(limit, detail=tail)
    if code - 128 in list(signal.Signals):
        name = signal.Signals(code - 128).name
        return ChildFailure("crashed", f"the process was killed by {name}", error_type=name, detail=tail)
    last = tail.splitlines()[-1] if tail else "it printed nothing"
    return ChildFailure("crashed", f"the process ended with exit code {code}: {last}", detail=tail)


def _out_of_memory(
    limit: int, *, error_type: str = "", detail: str = "", traceback: str = ""
) -> ChildFailure:
    than = f"the {limit / _GIB:.1f} GiB that is" if limit else "is"
    return ChildFailure(
        "out_of_memory",
        f"it needs more memory than {than} free here",
        error_type=error_type,
        detail=detail,
        traceback=traceback,
    )
