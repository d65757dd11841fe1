"""Functions that a shared object has, and those that it takes from others."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SEGMENT = struct.Struct("<IIQQQQQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_SHT_DYNSYM, _SHT_VERSIONS, _PT_LOAD = 11, 0x6FFFFFFF, 1
LOADERS = frozenset(
    {"dlopen", "dlmopen", "dlsym", "dlvsym", "dlinfo", "dladdr1", "dl_iterate_phdr", "_r_debug"}
)
"""Names of the C run time by which a program finds functions of other libraries."""
_LINKERS = frozenset(
    {"__gmon_start__", "__cxa_finalize", "_ITM_deregisterTMCloneTable", "_ITM_registerTMCloneTable"}
)
"""Functions that every shared object may call, if there are such."""
_ERRORS = struct.error, IndexError, ValueError
"""What reading raises if the file has another format."""


class Symbol(NamedTuple):
    """An entry of the dynamic symbol table."""

    name: str
    kind: int
    """STT_FUNC, STT_GNU_IFUNC, …"""
    defined: bool
    address: int
    versioned: bool
    """It has the version of a library, as all of the C, C++ and OpenMP run times have."""


class SharedObject:
    """A 64-bit little-endian ELF file.

    Raises:
        ValueError, struct.error, IndexError: the content has another format.
    """

    def __init__(self, data: bytes | bytearray) -> None:
        head = _HEADER.unpack_from(data)
        if head[0][:6] != b"\x7fELF\x02\x01":
            raise ValueError("no ELF file of 64 bits")
        self.machine: int = head[2]
        self._data = data
        self._segments = [_SEGMENT.unpack_from(data, head[5] + i * head[9]) for i in range(head[10])]
        self._sections = [_SECTION.unpack_from(data, head[6] + i * head[11]) for i in range(head[12])]

    def symbols(self) -> Iterator[Symbol]:
        """All dynamic symbols."""
        data = self._data
        versions = next((section[4] for section in self._sections if section[1] == _SHT_VERSIONS), None)
        for section in self._sections:
            if section[1] != _SHT_DYNSYM:
                continue
            strings = self._sections[section[6]][4]
            for place in range(section[4], section[4] + section[5], _SYMBOL.size):
                name, info, _, home, address, _ = _SYMBOL.unpack_from(data, place)
                text = data[strings + name : data.index(b"\0", strings + name)].decode("ascii", "replace")
                number = (place - section[4]) // _SYMBOL.size
                version = 0 if versions is None else struct.unpack_from("<H", data, versions + 2 * number)[0]
                versioned = version & 0x7FFF > 1
                yield Symbol(text, info & 0xF, home != 0, address, versioned)

    def offset(self, address: int) -> int:
        """Place in the file of an address."""
        for kind, _, offset, start, _, size, _, _ in self._segments:
            if kind == _PT_LOAD and start <= address < start + size:
                return int(offset + address - start)
        raise ValueError("an address outside of the file")


def imported(folder: Path) -> set[str]:
    """Names that the shared objects of a folder take from elsewhere.

    Those of the C, C++ and OpenMP run times are left out, except `LOADERS`, and so are the linker's and those
    that one object takes from another.
    """
    wanted: set[str] = set()
    found: set[str] = set()
    for path in folder.rglob("*.so"):
        if path.is_symlink() or not path.is_file():
            continue
        try:
            for symbol in SharedObject(path.read_bytes()).symbols():
                if symbol.defined:
                    found.add(symbol.name)
                elif symbol.name in LOADERS or (symbol.name and not symbol.versioned):
                    wanted.add(symbol.name)
        except (OSError, *_ERRORS):
            continue
    return wanted - found - _LINKERS
