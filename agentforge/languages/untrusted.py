"""Read files left by a process that ran untrusted source."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

LARGEST_OBJECT = 64 << 20
"""Bytes of a built object, at most: the cache keeps it."""


def read_regular(path: Path, most: int) -> bytes:
    """Read the beginning of a file.

    Raises:
        OSError: it is missing or not a regular file. A link leads elsewhere, and a pipe blocks the reader.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(f"{path.name} is not a regular file")
        return file.read(most)


def read_json(path: Path, most: int) -> Any:
    """Read a JSON file. Halves of surrogate pairs, which no file and no database takes, become `?`.

    Raises:
        OSError: as `read_regular`.
        ValueError, RecursionError: it is not JSON.
    """
    found = json.loads(read_regular(path, most))
    return json.loads(json.dumps(found, ensure_ascii=False).encode("utf-8", "replace"))


def regular_files(folder: Path, pattern: str) -> Iterator[Path]:
    """The regular files below a folder; links lead elsewhere, and pipes block the reader."""
    return (path for path in folder.rglob(pattern) if stat.S_ISREG(path.lstat().st_mode))


def object_problem(built: Path) -> str:
    """Why a file cannot be the object that a compiler was to write; empty if it can be."""
    try:
        found = built.lstat()
    except OSError as error:
        return f"{built.name}: {error.strerror}"
    if built.parent.is_symlink() or not stat.S_ISREG(found.st_mode):
        return f"{built.name} is not a regular file"
    if found.st_size > LARGEST_OBJECT:
        return f"{built.name} has {found.st_size >> 20} MiB; {LARGEST_OBJECT >> 20} are the limit"
    return ""
