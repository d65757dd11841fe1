"""Provenance of a result: date, machine, versions, command."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from agentforge.devices import detect

HERE = Path(__file__).resolve().parent
_DIRTY = "-dirty"
_WRITTEN = ("benchmarks/results", "docs")
"""What benchmarks write: it changes no measured code."""


def provenance() -> dict[str, Any]:
    """JSON-able provenance of this process."""
    device = detect("auto")
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": " ".join(["python", *(Path(a).name if a.startswith("/") else a for a in sys.argv)]),
        "device": device.name,
        "architecture": device.architecture,
        "threads": device.threads,
        "toolchain": device.toolchain,
        "platform": platform.platform(),
        "user": "root" if os.geteuid() == 0 else "ordinary",
        "commit": commit(),
    }


def commit(folder: Path = HERE) -> str:
    """The checkout in which a folder lies, with `-dirty` if tracked files not in `_WRITTEN` differ from it.

    Empty if this is no checkout, or there is no git.
    """

    def git(*arguments: str) -> subprocess.CompletedProcess[str]:
        # An ordinary user may not own it.
        command = ["git", "-C", str(folder), "-c", "safe.directory=*", *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    try:
        head = git("rev-parse", "--short", "HEAD")
        same = git("diff", "--quiet", "HEAD", "--", ":/", *(f":(top,exclude){path}" for path in _WRITTEN))
    except OSError:
        return ""
    name = head.stdout.strip()
    return f"{name}{_DIRTY}" if name and same.returncode else name


def same_code(before: str, now: str) -> bool:
    """Whether two commits on record are certainly the same code: both known, and without changes."""
    return before == now != "" and not now.endswith(_DIRTY)
