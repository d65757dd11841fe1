"""A gate: another process works on up to it, and waits there until something is ready."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Lock, Thread

from agentforge.isolation.scratch import Scratch


class Gate:
    """Shut until it is opened, or until its process ends: a locked file."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._scratch = Scratch("gate")
        file = self._scratch.path / "gate"
        self._descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._descriptor, fcntl.LOCK_EX)
        self.path = str(file)

    def open(self) -> None:
        """Let everybody through; safe to call twice, from several threads."""
        with self._lock:
            if self._descriptor >= 0:
                fcntl.flock(self._descriptor, fcntl.LOCK_UN)  # also if a fork has the descriptor
                os.close(self._descriptor)
                self._descriptor = -1
                self._scratch.close()


@contextmanager
def shut_until(ready: Callable[[], None]) -> Iterator[str]:
    """A gate's path. The gate opens when `ready`, called in a thread of its own, returns."""
    gate = Gate()

    def wait() -> None:
        try:
            ready()
        finally:
            gate.open()

    Thread(target=wait, name="gate", daemon=True).start()
    try:
        yield gate.path
    finally:
        gate.open()


def pass_gate(path: str, shut: Callable[[], None]) -> None:
    """Wait until a gate is open.

    Args:
        shut: called once if it is not.
    """
    with suppress(FileNotFoundError), Path(path).open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            shut()
            fcntl.flock(file, fcntl.LOCK_SH)
