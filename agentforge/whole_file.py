"""Files and folders that other processes see whole or not at all."""

from __future__ import annotations

import json
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from agentforge.schema import MachineError, UsageError

_PLANS = ({"mode", "units"}, {"solution", "evidence"})
"""Keys that an artifact's plan.json has: of a model, or of a kernel, where it is the verdict."""


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


@contextmanager
def whole_artifact(folder: Path) -> Iterator[Path]:
    """A folder to fill in the block. It takes the place of `folder` at the end, or is removed on an error.

    Args:
        folder: created if missing; an earlier artifact in it is replaced.

    Raises:
        UsageError: `folder` contains something that is not an artifact.
        MachineError: the folder cannot be written.
    """
    folder = folder.resolve()  # to replace what a link names, not the link
    try:
        if folder.exists() and any(folder.iterdir()) and not is_artifact(folder):
            raise UsageError(f"{folder} is not empty and is not an artifact; choose an empty or new folder")
        folder.parent.mkdir(parents=True, exist_ok=True)
        scratch = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
        try:
            yield scratch
            scratch.chmod(0o755)
            _swap(scratch, folder)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
    except OSError as error:
        raise MachineError(
            f"cannot write the artifact to {folder} ({error.strerror or error}); "
            "free some space there or choose another folder"
        ) from error


def is_artifact(folder: Path) -> bool:
    """Whether a run wrote the folder: other programs write a plan.json too."""
    try:
        plan = json.loads((folder / "plan.json").read_bytes())
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(plan, dict) and any(keys <= plan.keys() for keys in _PLANS)


def only_a_kernel(folder: Path) -> str:
    """What to do with a folder of a run that began with a kernel, in a sentence; empty for other folders."""
    there = all((folder / name).is_file() for name in ("plan.json", "reference.py"))
    if not there or (folder / "report.json").exists():
        return ""
    command = f"agentforge verify {folder / 'reference.py'} {folder}"
    return f"{folder} has a kernel, not a model: judge it with `{command}`"


def _swap(scratch: Path, folder: Path) -> None:
    """Replace `folder` with `scratch`; the old content is deleted only after the new one is in place."""
    if folder.exists():
        old = Path(tempfile.mkdtemp(prefix=f".{folder.name}-old-", dir=folder.parent))
        folder.replace(old)
        scratch.replace(folder)
        shutil.rmtree(old, ignore_errors=True)
    else:
        scratch.replace(folder)
