"""Versions of compilers and packages, found without importing them."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sysconfig
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

_VERSION_FLAGS = {
    "g++": ("-dumpfullversion", "-dumpversion"),
}


@cache
def tool_version(tool: str) -> str | None:
    """Version of a program on the PATH; None if it is missing or does not run."""
    path = shutil.which(tool) or _cuda_tool(tool)
    if path is None:
        return None
    flags = _VERSION_FLAGS.get(tool, ("--version",))
    try:
        done = subprocess.run([path, *flags], capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    if done.returncode != 0:
        return None
    # nvcc, ncu and nsys print a copyright first; their version follows "release" or "version".
    for pattern in (r"(?:release|[Vv]ersion)\s+V?(\d+(?:\.\d+)+)", r"\b(\d+(?:\.\d+)+)\b", r"\b(\d+)\b"):
        if match := re.search(pattern, done.stdout):
            return match.group(1)
    return "unknown"


def search_path() -> str:
    """Where workers look for programs: the PATH, then the folder of this Python's programs, such as ninja."""
    return os.pathsep.join([os.environ.get("PATH", os.defpath), sysconfig.get_path("scripts")])


def package_version(name: str) -> str | None:
    """Version of an installed distribution; None if it is missing."""
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def driver_version(file: Path = Path("/sys/module/nvidia/version")) -> str:
    """Version of NVIDIA's driver, as `580.95.05`; empty if the system does not show it."""
    try:
        return file.read_text().strip()
    except OSError:
        return ""


def gpu_present() -> bool:
    """True if an NVIDIA driver has created a device; makes no driver call."""
    return Path("/dev/nvidiactl").exists() or Path("/dev/dxg").exists()


def toolchain(tools: tuple[str, ...], packages: tuple[str, ...]) -> dict[str, str]:
    """Python's version and those of the tools and packages that are installed."""
    found = {"python": platform.python_version()}
    for name in packages:
        if text := package_version(name):
            found[name] = text
    for name in tools:
        if text := tool_version(name):
            found[name] = text
    return found


def _cuda_tool(tool: str) -> str | None:
    """CUDA installs its tools in a folder that is not on the PATH."""
    path = Path("/usr/local/cuda/bin") / tool
    return str(path) if path.is_file() else None
