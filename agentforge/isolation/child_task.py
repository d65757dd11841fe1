"""The child's side of `child_process`: carries out one task and answers."""

from __future__ import annotations

import importlib
import json
import os
import resource
import sys
import tempfile
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agentforge.isolation.memory_errors import is_out_of_memory


def read_request() -> dict[str, Any]:
    """Read the request from standard input, and be as a process that was started for it."""
    request: dict[str, Any] = json.loads(sys.stdin.buffer.read())
    os.environ.clear()
    os.environ.update(request["env"])
    tempfile.tempdir = None
    importlib.invalidate_caches()
    if numpy := sys.modules.get("numpy.random"):  # Python's own generator is seeded anew at a fork
        numpy.seed()
    return request


def run_task(request: Mapping[str, Any], answer_fd: int) -> None:
    """Carry out a request, answer on the given descriptor and leave."""

    def send(message: dict[str, Any]) -> None:
        data = json.dumps(message).encode() + b"\n"
        while data:
            data = data[os.write(answer_fd, data) :]

    try:
        module, _, function = request["task"].partition(":")
        task = getattr(importlib.import_module(module), function)
        _limit_memory(request["memory_bytes"])
        result = task(request["payload"], lambda text: send({"progress": _encodable(text)}))
        send({"result": result})
    except BaseException as error:  # SystemExit of the user's code is a failure as well
        send(_describe(error))
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)  # a thread or an atexit hook of the user's code must not keep us


def _limit_memory(growth: int) -> None:
    """Bound the address space to the mapped size plus `growth`, so that an allocation fails cleanly."""
    if not growth:
        return
    mapped = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    limit = mapped + growth
    resource.setrlimit(
        resource.RLIMIT_AS, (limit if hard == resource.RLIM_INFINITY else min(limit, hard), hard)
    )


def _describe(error: BaseException) -> dict[str, Any]:
    text = _encodable(str(error))
    return {
        "error": type(error).__name__,
        "message": text,
        "out_of_memory": is_out_of_memory(error, text),
        "traceback": _encodable("".join(traceback.format_exception(error))[-8000:]),
    }


def _encodable(text: str) -> str:
    """The text with escapes in the place of lone surrogates, which no file, database or terminal takes."""
    return text.encode(errors="backslashreplace").decode()
