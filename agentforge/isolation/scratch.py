"""Temporary folders that belong to a process, and are removed by the next start if it was killed."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import tempfile
import time
from contextlib import suppress
from pathlib import Path

_PREFIX = "agentforge-"
_OWNER = ".owner"
"""File that the living owner has locked. The kernel releases the lock with the process. Process numbers would
not tell apart the containers that share the folder."""
_OLD_S = 3600
"""Age at which a folder without that file, of an older version, is removed if its process is gone."""

_open: set[Scratch] = set()


class Scratch:
    """A new temporary folder of this process.

    Args:
        name: part of the folder's name.
    """

    def __init__(self, name: str) -> None:
        remove_leftovers()
        self.path = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{name}-{os.getpid()}-"))
        unfinished = self.path / f"{_OWNER}.new"
        self._lock = os.open(unfinished, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        unfinished.rename(self.path / _OWNER)  # no process sees it before it is locked
        _open.add(self)

    def close(self) -> None:
        """Remove the folder; safe to call twice."""
        if self in _open:
            _open.discard(self)
            remove(self.path)
            os.close(self._lock)


def remove(path: Path) -> None:
    """Remove a file or a folder that untrusted code may have filled; what cannot be removed stays.

    Folders may be nested too deep for Python, and not for `rm`.
    """
    with suppress(RecursionError):
        shutil.rmtree(path, ignore_errors=True)
    if path.is_symlink() or path.exists():
        subprocess.run(["rm", "-rf", "--", str(path)], stderr=subprocess.DEVNULL, check=False)


def readable_by_all(folder: Path) -> None:
    """Let every user read a folder and all below it: root's workers run as other users, and root's umask may
    forbid it."""
    for path in (folder, *folder.rglob("*")) if os.geteuid() == 0 else ():
        if not path.is_symlink():
            path.chmod(path.stat().st_mode & 0o7777 | (0o555 if path.is_dir() else 0o444))


def close_all() -> None:
    """Remove all folders of this process."""
    for scratch in list(_open):
        scratch.close()


def remove_leftovers() -> None:
    """Remove the folders of this user whose process was killed."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*-*"):
        with suppress(OSError):
            if folder.lstat().st_uid == os.geteuid() and _abandoned(folder):
                remove(folder)


def _abandoned(folder: Path) -> bool:
    try:
        lock = os.open(folder / _OWNER, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    except FileNotFoundError:
        owner = folder.name.split("-")[2:3]
        old = time.time() - folder.stat().st_mtime > _OLD_S
        return old and "".join(owner).isdigit() and not Path(f"/proc/{owner[0]}").exists()
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    finally:
        os.close(lock)
    return True
