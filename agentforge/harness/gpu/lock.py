"""One timing, and one profiler, at a time on each GPU of a machine."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal


@contextmanager
def gpu_lock(cache: Path, uuid: str, purpose: Literal["timing", "ncu"]) -> Iterator[None]:
    """Hold a GPU for one purpose, over all processes that share the cache folder; waits.

    Args:
        cache: folder of the lock files.
        uuid: the GPU's: its index depends on `CUDA_VISIBLE_DEVICES`.
        purpose: timings exclude each other, and so do profilers.
    """
    import fcntl

    cache.mkdir(parents=True, exist_ok=True)
    name = re.sub(r"[^A-Za-z0-9-]", "_", uuid)
    with (cache / f"gpu-{name}.{purpose}.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
