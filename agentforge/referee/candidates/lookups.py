"""Functions of libraries that Python code looks up by name (`ctypes`)."""

from __future__ import annotations

import _ctypes
import ctypes
import os
import re
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

from .elf import LOADERS

_RUN_TIMES = re.compile(r"^(?:lib(?:c|m|dl|rt|pthread|gomp|stdc\+\+|gcc_s|python[\d.]*)\.so|ld-linux|python)")
"""File names of the C, C++, OpenMP and Python run times."""


class _Place(ctypes.Structure):
    """`Dl_info` of the C library."""

    _fields_ = (
        ("file", ctypes.c_char_p),
        ("base", ctypes.c_void_p),
        ("name", ctypes.c_char_p),
        ("address", ctypes.c_void_p),
    )


class Lookups:
    """Keeps which functions are looked up from now on, until the process ends.

    Args:
        folder: libraries in it are the candidate's own, as those in the folder for temporary files are.
    """

    def __init__(self, folder: Path) -> None:
        self._own = [Path(os.path.realpath(place)) for place in (folder, tempfile.gettempdir())]
        self._found: set[str] = set()
        self._place_of = ctypes.CDLL(None).dladdr
        self._looking = False
        sys.addaudithook(self._heard)

    def _heard(self, event: str, args: tuple[Any, ...]) -> None:
        if event not in ("ctypes.dlsym", "ctypes.dlsym/handle") or self._looking:
            return
        self._looking = True  # looking it up tells this hook again
        try:
            library, name = args
            name = name.decode() if isinstance(name, bytes) else str(name)
            if self._is_foreign(int(getattr(library, "_handle", library) or 0), name):
                self._found.add(name)
        finally:
            self._looking = False

    def foreign(self) -> list[str]:
        """Those that are neither own functions nor of a run time, and those that look up others."""
        return sorted(self._found)

    def _is_foreign(self, handle: int, name: str) -> bool:
        if name in LOADERS:
            return True
        address = 0
        with suppress(OSError):
            address = _ctypes.dlsym(handle, name)
        place = _Place()
        if not address or not self._place_of(ctypes.c_void_p(address), ctypes.byref(place)):
            return False
        file = Path(os.path.realpath((place.file or b"").decode()))
        return not (_RUN_TIMES.match(file.name) or any(file.is_relative_to(own) for own in self._own))
