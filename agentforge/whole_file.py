"""Files that other processes see whole or not at all."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """A draft beside `path`, to write in the block; it becomes `path` at the end, or is removed on an error.

    Raises:
        OSError: the folder is missing or cannot be written.
    """
    draft = path.parent / f".new-{secrets.token_hex(8)}"
    try:
        yield draft
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
