"""What a candidate compiled when it ran, handed from one of its processes to the next of the same evaluation.

A candidate that uses torch.compile takes many seconds of compiling in each fresh process. What it left in its
cache is copied out of its scratch folder before it ends, and put into that of its successor. Nobody else ever
sees it. It is as little trusted as the candidate itself: only regular files are taken, of bounded size and
number, and nothing here looks at what they hold.
"""

from __future__ import annotations

import os
import shutil
import stat
from pathlib import Path

_MOST_BYTES, _MOST_FILES = 256 << 20, 8192
_OPEN = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_PLACE = "inductor"


def cache_place(scratch: Path) -> Path:
    """Where a process with this scratch folder keeps compiled code."""
    return scratch / _PLACE


class CompiledCode:
    """The compiled code of one candidate.

    Args:
        folder: to keep it in; made when there is something to keep.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @property
    def there(self) -> bool:
        return self.folder.is_dir()

    def collect(self, pid: int, scratch: Path) -> None:
        """Take what a process has in its cache; where that is too much, what was taken before stays.

        Args:
            pid: of the process, alive and stopped.
            scratch: its scratch folder, as it sees it.
        """
        source = Path(f"/proc/{pid}/root", *cache_place(scratch).parts[1:])
        fresh = self.folder.with_name(self.folder.name + "-fresh")
        try:
            if _copy(source, fresh):
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
    """Copy the regular files below `source`; False where there are none or too many. No link is followed."""
    number = nbytes = 0
    for folder, _, names, descriptor in os.fwalk(source, follow_symlinks=False):
        here = target / Path(folder).relative_to(source)
        here.mkdir(parents=True)
        for name in names:
            number += 1
            nbytes += _copy_file(descriptor, name, here / name, _MOST_BYTES - nbytes)
            if number > _MOST_FILES or nbytes > _MOST_BYTES:
                return False
    return nbytes > 0


def _copy_file(folder: int, name: str, target: Path, most: int) -> int:
    """Copy one file, at most one byte more than `most`; bytes copied, 0 for what is no regular file."""
    try:
        source = os.open(name, _OPEN, dir_fd=folder)
    except OSError:
        return 0
    with os.fdopen(source, "rb") as file:
        if not stat.S_ISREG(os.fstat(source).st_mode):
            return 0
        return target.write_bytes(file.read(most + 1))
