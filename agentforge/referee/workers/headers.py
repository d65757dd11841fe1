"""Inductor's precompiled headers: 150 MB that take 10 s, shared by all homes of a user.

A compiler that is killed leaves a part of such a file. g++ fails if it finds that part; it would compile
without the file. So a header is precompiled apart, and moved to its place when it is whole.
"""

from __future__ import annotations

import functools
import os
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

VARIABLE = "AGENTFORGE_HEADERS"
"""Tells a forkserver the folder."""


def header_folder(cache: Path) -> Path:
    """Where precompiled headers are: below the referee's `cache` if this user has no folder for caches."""
    with suppress(RuntimeError):  # no home folder
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        if os.access(base if base.exists() else base.parent, os.W_OK):
            return base.absolute() / "agentforge" / "headers"
    return cache / "headers"


def keep_headers_in(folder: Path) -> None:
    """Let Inductor, if it is imported, keep precompiled headers in this folder.

    Those that this process, or the one that it was forked from, has used stay where they are.
    """
    codecache: Any = sys.modules.get("torch._inductor.codecache")
    if codecache is None:
        return
    codecache._HEADER_DIR, codecache._HEADER_LOCK_DIR = str(folder), str(folder / "locks")
    precompile: Any = getattr(codecache, "_precompile_header", None)  # not in each version of torch
    if hasattr(precompile, "__wrapped__") and precompile.__module__ != __name__:
        codecache._precompile_header = _whole(precompile.__wrapped__)


def _whole(precompile: Callable[..., str]) -> Callable[..., str]:
    """Inductor's function, with files that appear in the folder when they are whole."""

    @functools.cache
    def precompile_apart(*args: Any, **options: Any) -> str:
        folder = Path(sys.modules["torch._inductor.codecache"]._HEADER_DIR)
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".new-", dir=folder) as name:
            apart = Path(name)
            for file in folder.glob("*.h*"):
                os.link(file, apart / file.name)
            keep_headers_in(apart)
            try:
                made = Path(precompile(*args, **options))
            finally:
                keep_headers_in(folder)
            for file in apart.glob(f"{made.name}*"):
                if file.is_file():
                    file.replace(folder / file.name)
        return str(folder / made.name)

    return precompile_apart
