"""One timing at a time on a device, and one profiler at a time on a GPU."""

from __future__ import annotations

import fcntl
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Literal

from agentforge.schema import TimeEnded

WAITING = "waiting for another process that measures"
_PAUSE_S = 0.05


@contextmanager
def device_lock(
    cache: Path,
    name: str = "timing",
    *,
    until: float | None = None,
    progress: Callable[[str], None] | None = None,
) -> Iterator[None]:
    """Hold a lock over all processes that share the cache folder; waits.

    Args:
        until: by `time.monotonic()`, the end of the caller's time; None waits for ever.
        progress: called once, with `WAITING`, if it waits.

    Raises:
        TimeEnded: another process has the lock until then.
    """
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / f"{name}.lock").open("w") as file:
        waited = False
        while not _taken(file):
            if until is not None and time.monotonic() > until:
                raise TimeEnded(
                    f"the run's time ended while another process held {file.name}: end that one, or let it "
                    "go on if it is stopped, and resume this run with more minutes"
                )
            if progress is not None and not waited:
                progress(WAITING)
            waited = True
            time.sleep(_PAUSE_S)
        yield


def _taken(file: IO[str]) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


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
