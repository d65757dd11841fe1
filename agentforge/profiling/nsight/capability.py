"""Find out whether hardware counters can be read, and if not, why."""

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
"""Oldest version whose reports contain rule results with estimated speedups."""


class Refusal(StrEnum):
    """Why counters cannot be read."""

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


_KNOWN_ERRORS: tuple[tuple[str, Refusal, str], ...] = (
    (
        "ERR_NVGPUCTRPERM",
        Refusal.PERMISSION,
        "the driver restricts hardware counters to administrators (ERR_NVGPUCTRPERM): set "
        "NVreg_RestrictProfilingToAdminUsers=0 for its kernel module; it runs in the candidate's sandbox "
        "without administrator rights",
    ),
    (
        "driver resource was unavailable",
        Refusal.PERMISSION,
        "another profiler uses the hardware counters (pause DCGM with `dcgmi profile --pause`), or this "
        "hosted GPU provides none",
    ),
    (
        "LibraryNotLoaded",
        Refusal.PERMISSION,
        "Nsight Compute cannot load the driver's library for counters: a container needs the driver "
        "capabilities compute and utility, and some systems allow it for administrators only",
    ),
    (
        "uses the Windows Subsystem for Linux",
        Refusal.PERMISSION,
        "this Windows Subsystem for Linux provides no hardware counters: allow them in the driver's control "
        "panel, or use a newer Windows",
    ),
    (
        "Cuda driver is not compatible",
        Refusal.OTHER_VERSION,
        "this Nsight Compute does not match the driver: install the version for the driver's CUDA version",
    ),
    (
        "Profiling is not supported on device",
        Refusal.OTHER_VERSION,
        "this Nsight Compute does not support the GPU: install a newer version, or (before Volta) an older",
    ),
)
"""ncu's messages and their meaning; the first match counts."""
UNKNOWN_METRIC = "Failed to find metric"
"""Part of ncu's message before it exits because the chip lacks a requested metric."""
NONE_PROFILED = "No kernels were profiled"
"""Part of ncu's message if no launch matched its filter."""
_ERROR, _WARNING = "==ERROR==", "==WARNING=="
_PREAMBLE = "An error was reported by"
"""Begins a line which only announces that the next line has the reason."""


def refusal_in(output: str) -> Refused | None:
    """Why ncu cannot collect anything here, from its output; None if the output has no known reason."""
    for sign, kind, message in _KNOWN_ERRORS:
        if sign.lower() in output.lower():
            return Refused(kind, message)
    return None


def error_line(output: str) -> str:
    """The line of ncu's output that explains a failure: the first error, a warning, or the last line."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    for sign in (_ERROR, _WARNING):
        for line in lines:
            text = line.removeprefix(sign).strip()
            if line.startswith(sign) and text and not text.startswith(_PREAMBLE):
                return text[:_MOST_TEXT]
    return lines[-1][:_MOST_TEXT] if lines else "it printed nothing"


def find_ncu() -> str | None:
    """Path of `ncu`: $NCU, else on PATH, else in the toolkit's folders (newest version first)."""
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

    Only a profiling attempt shows whether the driver lets this user read counters.

    Raises:
        Refused: it cannot work.
    """
    ncu = find_ncu()
    if ncu is None:
        raise Refused(
            Refusal.NO_NCU,
            "Nsight Compute is not installed: install the package cuda-nsight-compute, or set $NCU",
        )
    version = version_of(tool_version(ncu) or "")
    if version is not None and version < _OLDEST:
        raise Refused(
            Refusal.OTHER_VERSION,
            f"Nsight Compute {version[0]}.{version[1]} is too old: install one of {_OLDEST[0]} or later",
        )
    return ncu


def install_folders(ncu: str) -> tuple[Path, ...]:
    """Installation folders that belong to a path of `ncu`; a candidate may read them.

    A toolkit's `ncu` is a script that starts the one in a folder beside its own, or below /opt.
    """
    own = Path(ncu).resolve().parent
    beside = sorted(own.parent.glob("nsight-compute-*"), reverse=True)
    found = (own, *beside, *(f for place in _FOLDERS for f in sorted(Path(place).glob("20*"), reverse=True)))
    return tuple(folder for folder in found if (folder / "extras").is_dir())  # excludes users' home folders


def version_of(text: str) -> tuple[int, int] | None:
    """Year and number of ncu's version text (`2025.3.1.0`); None if there is none."""
    match = re.search(r"\b(20\d\d)\.(\d+)", text)
    return (int(match[1]), int(match[2])) if match else None


class RefusalReporter:
    """Reports each kind of refusal once. Thread-safe."""

    def __init__(self, warn: Callable[[str], None]) -> None:
        self._warn = warn
        self._lock = Lock()
        self._said: set[Refusal] = set()

    def __call__(self, refused: Refused) -> None:
        with self._lock:
            if refused.kind in self._said:
                return
            self._said.add(refused.kind)
        self._warn(f"{refused}; falling back to kernel times and counted bytes and operations")
