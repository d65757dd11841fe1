"""Import optional packages on first use and check their versions."""

from __future__ import annotations

import re
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from agentforge.schema import MachineError, pip_install

INSTALL = f"run {pip_install('llm')}"

OPENAI_MINIMUM = "3.52"
"""Oldest tested version of the package `openai`."""


def require(package: str, minimum: str) -> Any:
    """Import a vendor's SDK.

    Raises:
        MachineError: it is missing, too old or broken.
    """
    try:
        found = version(package)
    except PackageNotFoundError as error:
        raise MachineError(f"the package {package!r} is not installed: {INSTALL}") from error
    if _numbers(found) < _numbers(minimum):
        raise MachineError(f"{package} {found} is older than {minimum}, the minimum: {INSTALL}")
    try:
        return import_module(package)
    except ImportError as error:
        raise MachineError(f"{package} {found} does not import ({error}): {INSTALL}") from error


def _numbers(text: str) -> tuple[int, ...]:
    """Leading numbers of a version: `3.52.0rc1` gives (3, 52, 0)."""
    found = re.match(r"\d+(?:\.\d+)*", text)
    return tuple(int(part) for part in found[0].split(".")) if found else ()
