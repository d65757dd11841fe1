"""Cache of built objects by content hash, shared by concurrent processes."""

from __future__ import annotations

import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from agentforge.languages.untrusted import object_problem
from agentforge.schema import Diagnostic, Finding, FrozenModel, Metric, ResourceUsage


class BuildRecord(FrozenModel):
    """The compiler's output for a built object."""

    diagnostics: tuple[Diagnostic, ...] = ()
    metrics: tuple[Metric, ...] = ()
    findings: tuple[Finding, ...] = ()
    resources: tuple[ResourceUsage, ...] = ()


@dataclass(frozen=True)
class ObjectCache:
    """A folder of `<key>.so` files, each with `<key>.json`.

    Entries are written to a temporary file, renamed, and never changed, so no locks are needed.
    """

    folder: Path

    def fetch(self, key: str, target: Path) -> BuildRecord | None:
        """Place the object at `target`; return None if it is not cached."""
        stored = self.folder / f"{key}.so"
        try:
            record = BuildRecord.model_validate_json((self.folder / f"{key}.json").read_bytes())
            _place(stored, target)
        except (OSError, ValidationError):
            return None
        return record

    def store(self, key: str, built: Path, record: BuildRecord) -> None:
        """Add a built object. A full or read-only disk is ignored: the next build compiles again.

        Raises:
            ValueError: `built` has an `object_problem` (the compiler ran on untrusted source).
        """
        if problem := object_problem(built):
            raise ValueError(problem)
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            _place(built, self.folder / f"{key}.so")
        except OSError:
            return
        keep_text(self.folder / f"{key}.json", record.model_dump_json())


def keep_text(path: Path, text: str) -> None:
    """Write a file at once, never in part. A full or read-only disk is ignored: it only costs time."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=path.parent, prefix=".new-", delete=False) as file:
            file.write(text)
        Path(file.name).replace(path)
    except OSError:
        return


def _place(source: Path, target: Path) -> None:
    """Copy atomically: `target` is always either absent or complete."""
    descriptor, name = tempfile.mkstemp(dir=target.parent, prefix=".new-")
    os.close(descriptor)
    try:
        shutil.copyfile(source, name, follow_symlinks=False)
        Path(name).chmod(0o755)
        Path(name).replace(target)
    except OSError:
        Path(name).unlink()
        raise
