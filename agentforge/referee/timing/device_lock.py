"""One timing at a time on a device, and one profiler at a time on a GPU."""

from __future__ import annotations

import fcntl
import os
import re
import stat
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Literal

from agentforge.schema import TimeEnded

WAITING = "waiting for another process that measures"
_PAUSE_S = 0.05
_MAKING_S = 0.1
"""Seconds for which another user may have what it makes here for itself."""
_MACHINE = "agentforge-locks"
"""Folder of the locks of all users and homes, in the machine's temporary folder."""


@contextmanager
def device_lock(
    cache: Path,
    name: str = "cpu.timing",
    *,
    until: float | None = None,
    progress: Callable[[str], None] | None = None,
) -> Iterator[None]:
    """Hold a lock over all processes of the machine, and over those that share the cache folder; waits.

    Containers may share a cache folder and have temporary folders of their own. If the temporary folder
    cannot be used, the lock is that of the cache folder alone.

    Args:
        until: by `time.monotonic()`, the end of the caller's time; None waits for ever.
        progress: called once, with `WAITING`, if it waits.

    Raises:
        TimeEnded: another process has the lock until then.
    """
    waited = False
    with ExitStack() as held:

        def take(made: Callable[[], Path]) -> None:
            nonlocal waited
            while (file := _taken(path := made() / f"{name}.lock")) is None:
                if until is not None and time.monotonic() > until:
                    raise TimeEnded(
                        f"the run's time ended while another process held {path}: end that one, or let it "
                        "go on if it is stopped, and resume this run with more minutes"
                    )
                if progress is not None and not waited:
                    progress(WAITING)
                waited = True
                time.sleep(_PAUSE_S)
            held.callback(os.close, file)

        take(partial(_folder, cache))
        with suppress(OSError):  # something of another user is in the way
            take(_machine_folder)
        yield


def _folder(cache: Path) -> Path:
    cache.mkdir(parents=True, exist_ok=True)
    return cache.resolve()


def _machine_folder() -> Path:
    """The folder for all users and homes.

    Raises:
        OSError: it cannot be made.
    """
    folder = Path(tempfile.gettempdir()).resolve() / _MACHINE
    with suppress(FileExistsError):
        folder.mkdir()
        folder.chmod(0o1777)  # whatever the umask says
    return folder


def _opened(path: Path) -> int:
    """Descriptor of a lock's file, which may be another user's. Follows no link to the file or its folder.

    Raises:
        OSError: it cannot be opened, or is no file.
    """
    flags = os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    folder = os.open(path.parent, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        with suppress(FileExistsError):
            made = os.open(path.name, flags | os.O_CREAT | os.O_EXCL, 0o666, dir_fd=folder)
            os.fchmod(made, 0o666)
            return made
        # Without O_CREAT, with which Linux may refuse a file of another user.
        file = os.open(path.name, flags, dir_fd=folder)
    finally:
        os.close(folder)
    if stat.S_ISREG(os.fstat(file).st_mode):
        return file
    os.close(file)
    raise OSError(f"{path} is no file")


def _taken(path: Path) -> int | None:
    """Descriptor with the lock; None if another process has it, or the file was removed meanwhile."""
    file = None
    with suppress(BlockingIOError, FileNotFoundError):
        file = _patiently(path)
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.path.samestat(os.fstat(file), path.lstat()):
            with suppress(OSError):
                os.utime(file)  # programs that clear temporary folders remove old files
            return file
    if file is not None:
        os.close(file)
    return None


def _patiently(path: Path) -> int:
    """`_opened`. Between `mkdir` and `chmod` of another user, the folder is closed; so is a new file."""
    until = time.monotonic() + _MAKING_S
    while True:
        try:
            return _opened(path)
        except PermissionError:
            if time.monotonic() > until:
                raise
            time.sleep(_PAUSE_S)


@contextmanager
def gpu_lock(
    cache: Path,
    uuid: str,
    purpose: Literal["timing", "ncu"],
    *,
    until: float | None = None,
    progress: Callable[[str], None] | None = None,
) -> Iterator[None]:
    """Hold a GPU for one purpose: timings exclude each other, and so do profilers; see `device_lock`.

    Args:
        uuid: the GPU's: its index depends on `CUDA_VISIBLE_DEVICES`.
    """
    name = f"gpu-{re.sub(r'[^A-Za-z0-9-]', '_', uuid)}.{purpose}"
    with device_lock(cache, name, until=until, progress=progress):
        yield
