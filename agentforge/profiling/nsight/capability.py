"""Whether hardware counters can be read here, and why not. Said once, never guessed."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from threading import Lock

from agentforge.devices import tool_version

_FOLDERS = ("/usr/local/cuda/bin", "/opt/nvidia/nsight-compute")
_MOST_TEXT = 300
_OLDEST = (2022, 1)
"""The first whose reports carry rule results with estimated speedups."""


class Refusal(StrEnum):
    """Why there are no counters."""

    NO_NCU = "no ncu"
    NO_READER = "no reader"
    PERMISSION = "permission"
    OTHER_VERSION = "other version"
    FAILED = "failed"


class Refused(Exception):
    """Counters cannot be read; the message says why and what would help."""

    def __init__(self, kind: Refusal, message: str) -> None:
        super().__init__(message)
        self.kind = kind


_SAID: tuple[tuple[str, Refusal, str], ...] = (
    (
        "ERR_NVGPUCTRPERM",
        Refusal.PERMISSION,
        "the driver keeps hardware counters for administrators (ERR_NVGPUCTRPERM): set "
        "NVreg_RestrictProfilingToAdminUsers=0 for its module; what profiles a candidate shares its sandbox, "
        "and is no administrator",
    ),
    (
        "driver resource was unavailable",
        Refusal.PERMISSION,
        "another profiler holds the hardware counters (pause DCGM with `dcgmi profile --pause`), or this "
        "hosted GPU has none",
    ),
    (
        "LibraryNotLoaded",
        Refusal.PERMISSION,
        "Nsight Compute cannot load the driver's library for counters: a container needs the driver "
        "capabilities compute and utility, and some systems give it to administrators only",
    ),
    (
        "uses the Windows Subsystem for Linux",
        Refusal.PERMISSION,
        "this Windows Subsystem for Linux gives no hardware counters: allow them in the driver's control "
        "panel, or use a newer Windows",
    ),
    (
        "Cuda driver is not compatible",
        Refusal.OTHER_VERSION,
        "this Nsight Compute does not fit the driver: install the one of the driver's CUDA version",
    ),
    (
        "Profiling is not supported on device",
        Refusal.OTHER_VERSION,
        "this Nsight Compute does not know the GPU: install a newer one, or for a GPU before Volta an older",
    ),
)
"""What ncu prints, and what it means; the first that is found."""
UNKNOWN_METRIC = "Failed to find metric"
"""Part of what ncu prints, and gives up, where the chip has no metric of a name that it was given."""
NONE_PROFILED = "No kernels were profiled"
"""Part of what ncu prints where no launch went through its filter."""
_ERROR, _WARNING = "==ERROR==", "==WARNING=="
_PREAMBLE = "An error was reported by"
"""Begins a line that only says that the next one has the reason."""


def refusal_in(said: str) -> Refused | None:
    """Why ncu collects nothing here, from what it printed; None where it says nothing of the kind."""
    for sign, kind, message in _SAID:
        if sign.lower() in said.lower():
            return Refused(kind, message)
    return None


def complaint_in(said: str) -> str:
    """The line of ncu's output that says what went wrong: its first error, else a warning, else the last."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    for sign in (_ERROR, _WARNING):
        for line in lines:
            text = line.removeprefix(sign).strip()
            if line.startswith(sign) and text and not text.startswith(_PREAMBLE):
                return text[:_MOST_TEXT]
    return lines[-1][:_MOST_TEXT] if lines else "it said nothing"


def find_ncu() -> str | None:
    """Path of `ncu`: on PATH, in $NCU, or where the toolkit puts it; the newest of several."""
    named = os.environ.get("NCU")
    if named:
        return named if os.access(named, os.X_OK) else None
    if found := shutil.which("ncu"):
        return found
    for folder in _FOLDERS:
        candidates = sorted(Path(folder).glob("ncu")) + sorted(Path(folder).glob("*/ncu"))
        if candidates:
            return str(candidates[-1])
    return None


def available_ncu() -> str:
    """Path of an `ncu` that may work here.

    Whether the driver lets this user read counters is only known after a try.

    Raises:
        Refused: it cannot work.
    """
    ncu = find_ncu()
    if ncu is None:
        raise Refused(
            Refusal.NO_NCU,
            "Nsight Compute is not installed: install the package cuda-nsight-compute, or name it in $NCU",
        )
    version = version_of(tool_version(ncu) or "")
    if version is not None and version < _OLDEST:
        raise Refused(
            Refusal.OTHER_VERSION,
            f"Nsight Compute {version[0]}.{version[1]} is too old: install one of {_OLDEST[0]} or later",
        )
    return ncu


def install_folders(ncu: str) -> tuple[Path, ...]:
    """Folders of the installation that a path of `ncu` belongs to; a candidate may see them.

    The toolkit's `cuda/bin/ncu` is a script that starts the one in `cuda/nsight-compute-VERSION`.
    """
    own = Path(ncu).resolve().parent
    found = (own, *sorted(own.parent.glob("nsight-compute-*"), reverse=True))
    return tuple(folder for folder in found if (folder / "extras").is_dir())  # and no user's home


def version_of(text: str) -> tuple[int, int] | None:
    """Year and number of a version text of ncu (`2025.3.1.0`); None where there is none."""
    match = re.search(r"\b(20\d\d)\.(\d+)", text)
    return (int(match[1]), int(match[2])) if match else None


class Once:
    """Passes each kind of refusal on once. Thread-safe."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._lock = Lock()
        self._said: set[Refusal] = set()

    def __call__(self, refused: Refused) -> None:
        with self._lock:
            if refused.kind in self._said:
                return
            self._said.add(refused.kind)
        self._say(f"{refused}; falling back to kernel times and counted bytes and operations")
