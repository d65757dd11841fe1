"""What failed twice on this machine for a reason that lasts: no later run waits for the same limit again."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from agentforge._version import __version__
from agentforge.devices import DeviceSpec
from agentforge.isolation.procfs import boot_id
from agentforge.schema import content_hash
from agentforge.whole_file import whole_file

_ALIKE = 1.25
"""Free memory is never twice the same: only this many times as much counts as more."""
_LEAST_DISK = 256 << 20
"""Free bytes below which nothing is kept: compilers fail for want of space."""


class KnownFailures:
    """Failures by content, a file each below the cache: without the file, it is tried again.

    Only the second of two counts: the first may be due to another program's memory, or a cold disk. They
    count for one device and toolchain, until the machine starts again. Limits are seconds, or bytes if their
    names end so.
    """

    def __init__(self, cache: Path, device: DeviceSpec) -> None:
        self._folder = Path(cache) / "failures"
        self._machine = [boot_id(), __version__, device.model_dump(mode="json")]

    def find(self, content: object, limits: Mapping[str, float]) -> str:
        """Why this content (as JSON) failed twice; empty if that is not known, or a limit is larger now."""
        file = self._file(content)
        try:
            kept = _read(file)
            if kept["times"] < 2:
                return ""
            for name, most in kept["limits"].items():
                if not limits[name] <= most * (_ALIKE if name.endswith("bytes") else 1.0):
                    return ""
            why, since = kept["why"], kept["since"]
        except (LookupError, TypeError, AttributeError):
            return ""
        place = file.relative_to(self._folder.parents[1])
        return f"{why}; known since {since}, delete {place} in AGENTFORGE_HOME to try again"

    def keep(self, content: object, why: str, limits: Mapping[str, float]) -> None:
        """Count a failure. The second time it is known until a limit is larger; not if the disk is full."""
        file = self._file(content)
        with suppress(OSError):
            file.parent.mkdir(parents=True, exist_ok=True)
            if min(shutil.disk_usage(f).free for f in (file.parent, tempfile.gettempdir())) > _LEAST_DISK:
                since, times = f"{datetime.now(UTC):%Y-%m-%d}", 2 if _read(file) else 1
                with whole_file(file) as draft:
                    kept = {"why": why, "since": since, "times": times, "limits": limits}
                    draft.write_text(json.dumps(kept))

    def _file(self, content: object) -> Path:
        return self._folder / f"{content_hash([*self._machine, content])}.json"


def _read(file: Path) -> dict[str, Any]:
    try:
        kept = json.loads(file.read_text())
    except (OSError, ValueError):
        return {}
    return kept if isinstance(kept, dict) else {}
