"""Files that the API keeps in AgentForge's home folder."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from agentforge.schema import MachineError
from agentforge.whole_file import whole_file


@contextmanager
def kept_file(path: Path, what: str) -> Iterator[Path]:
    """A draft to write in the block; it becomes `path` at the end. Missing folders are made.

    Args:
        path: a file below the home folder.
        what: its content, for a message.

    Raises:
        MachineError: the file cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with whole_file(path) as draft:
            yield draft
    except OSError as error:
        raise MachineError(
            f"{what} cannot be kept in {path.parent} ({error.strerror}): "
            "free some space, or set AGENTFORGE_HOME to another folder"
        ) from error
