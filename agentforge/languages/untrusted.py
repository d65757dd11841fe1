"""Reading what a process that ran untrusted source left behind."""

from __future__ import annotations

import os
import stat
from pathlib import Path


def read_regular(path: Path, most: int) -> bytes:
    """The beginning of a file.

    Args:
        path: where an untrusted process was to put it.
        most: bytes.

    Raises:
        OSError: it is not there, or is no regular file: a link leads elsewhere, and a pipe keeps whoever
            opens it waiting.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(f"{path.name} is not a regular file")
        return file.read(most)
