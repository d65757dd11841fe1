"""The child's side of `child_process`: `python -m agentforge.isolation.child_main FD PARENT`."""

from __future__ import annotations

import importlib
import json
import os
import resource
import sys
import traceback
from pathlib import Path
from typing import Any

from agentforge.isolation import linux
from agentforge.isolation.memory_errors import is_out_of_memory


def main(argv: list[str]) -> int:
    """Read the request from standard input, run it, answer on the given descriptor."""
    answer_fd, parent = int(argv[1]), int(argv[2])
    linux.die_with_parent()
    if os.getppid() != parent:  # it died before the call
        os._exit(1)
    request = json.load(sys.stdin)
    sys.path[:] = request["path"]
    os.set_inheritable(answer_fd, False)

    def send(message: dict[str, Any]) -> None:
        data = json.dumps(message).encode() + b"\n"
        while data:
            data = data[os.write(answer_fd, data) :]

    try:
        module, _, function = request["task"].partition(":")
        task = getattr(importlib.import_module(module), function)
        _limit_memory(request["memory_bytes"])
        result = task(request["payload"], lambda text: send({"progress": _encodable(text)}))
    except BaseException as error:  # SystemExit of the user's code is a failure as well
        send(_describe(error))
        return 0
    send({"result": result})
    return 0


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


if __name__ == "__main__":
    status = main(sys.argv)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)  # a thread or an atexit hook of the user's code must not keep us
