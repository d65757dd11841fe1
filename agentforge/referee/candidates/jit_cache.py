"""Pass what a candidate compiled at run time to the next process of the same evaluation.

The cache is copied out of the scratch folder and into the successor's: only folders and regular files, of
bounded size and number. Nothing here reads them.

A candidate that calls torch.compile also sees the code that the compiled baselines of the same definition
have, through links to read-only files. No candidate gains by it, because compiling is not measured.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from agentforge.isolation.scratch import readable_by_all
from agentforge.schema import Solution

_MOST_BYTES, _MOST_FILES = 256 << 20, 8192
_OPEN = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_PLACE = "inductor"
_TORCH = re.compile(r"\bimport torch as (\w+)")
_COMPILED_BY = re.compile(r"\b(\w+)\.compile\b")
_COMPILES = re.compile(r"from torch import [^\n]{0,400}\bcompile\b|\.compile\(\)")
"""The length is limited, because the text may be one long line of such beginnings."""
_STITCHED = "agentforge_stitch/"


def cache_place(scratch: Path) -> Path:
    """Folder in which a process with this scratch folder keeps compiled code."""
    return scratch / _PLACE


def calls_compiler(solution: Solution) -> bool:
    """Whether a solution seems to call torch.compile.

    The runtime of a stitched model could; whether it does, `model_new.py` says.
    """
    own = (f for f in solution.sources if f.path.endswith(".py") and not f.path.startswith(_STITCHED))
    return any(_compiles(f.content) for f in own)


def _compiles(text: str) -> bool:
    names = {"torch", *_TORCH.findall(text)}
    return not names.isdisjoint(_COMPILED_BY.findall(text)) or _COMPILES.search(text) is not None


def link_missing(source: Path, target: Path, before: float) -> None:
    """Link the files below `source` that `target` lacks into it; locks stay apart.

    Args:
        before: seconds by `time.time()`; newer files may not be whole yet.
    """
    for folder, inside, names in os.walk(source):
        if "locks" in inside:
            inside.remove("locks")
        here = target / Path(folder).relative_to(source)
        here.mkdir(parents=True, exist_ok=True)
        for name in names:
            file = Path(folder, name)
            with suppress(OSError):  # it is there, or was a temporary file
                if file.stat().st_mtime < before:
                    (here / name).symlink_to(file)


class CompiledCode:
    """The compiled code of one candidate."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._first: Callable[[], None] | None = None

    def follow(self, collect: Callable[[], None]) -> None:
        """Let each `update` call this, which collects the code of a process. Only the first one counts."""
        self._first = self._first or collect

    def update(self) -> None:
        """Collect what the first process has compiled until now, if it still lives."""
        if self._first is not None:
            self._first()

    @property
    def there(self) -> bool:
        return self.folder.is_dir()

    def collect(self, pid: int, scratch: Path) -> None:
        """Copy the cache of a process. If it is too large, the earlier copy stays."""
        source = Path(f"/proc/{pid}/root", *cache_place(scratch).parts[1:])
        fresh = self.folder.with_name(self.folder.name + "-fresh")
        try:
            if _copy(source, fresh):
                readable_by_all(fresh)
                self.forget()
                fresh.rename(self.folder)
        except (OSError, RecursionError):
            pass  # A tree that cannot be walked, or a process that cannot be looked into: it compiles again.
        finally:
            shutil.rmtree(fresh, ignore_errors=True)

    def forget(self) -> None:
        """Remove it."""
        shutil.rmtree(self.folder, ignore_errors=True)


def _copy(source: Path, target: Path) -> bool:
    """Copy the regular files below `source`; False if there are none, or too many files and folders. No link
    is followed."""
    number = nbytes = 0
    for folder, inside, names, descriptor in os.fwalk(source, follow_symlinks=False):
        number += len(inside) + len(names)
        if number > _MOST_FILES:
            return False
        here = target / Path(folder).relative_to(source)
        here.mkdir(parents=True)
        for name in names:
            nbytes += _copy_file(descriptor, name, here / name, _MOST_BYTES - nbytes)
            if nbytes > _MOST_BYTES:
                return False
    return nbytes > 0


def _copy_file(folder: int, name: str, target: Path, most: int) -> int:
    """Copy one file, at most one byte more than `most`; returns the bytes copied, 0 if it is no regular
    file."""
    try:
        source = os.open(name, _OPEN, dir_fd=folder)
    except OSError:
        return 0
    with os.fdopen(source, "rb") as file:
        if not stat.S_ISREG(os.fstat(source).st_mode):
            return 0
        return target.write_bytes(file.read(most + 1))
