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
        "commit": _commit(),
    }


def _commit() -> str:
    """Empty if this is no checkout, or there is no git."""
    # An ordinary user may not own it.
    command = ["git", "-c", "safe.directory=*", "rev-parse", "--short", "HEAD"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
    except OSError:
        return ""
