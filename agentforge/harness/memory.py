"""Shared memory between the referee and its workers, and tensors laid out in it."""

from __future__ import annotations

import ctypes
import fcntl
import mmap
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

_F_ADD_SEALS = 1033
_F_SEAL_SHRINK, _F_SEAL_GROW, _F_SEAL_FUTURE_WRITE = 0x2, 0x4, 0x10
ALIGNMENT = 64
"""Bytes; what torch's own CPU allocator gives."""
MAX_DIMENSIONS = 32

DTYPES: dict[str, torch.dtype] = {
    name: getattr(torch, name)
    for name in (
        "float64", "float32", "float16", "bfloat16", "complex64", "complex128",
        "int64", "int32", "int16", "int8", "uint8", "bool", "float8_e4m3fn", "float8_e5m2",
    )
}  # fmt: skip
"""Element types that may travel, by name."""


def dtype_name(dtype: torch.dtype) -> str:
    """`float32` for `torch.float32`."""
    return str(dtype).removeprefix("torch.")


def aligned(nbytes: int) -> int:
    """`nbytes` rounded up to the alignment."""
    return -(-nbytes // ALIGNMENT) * ALIGNMENT


@dataclass(frozen=True)
class Layout:
    """Where a tensor lies in a block: offset in bytes, strides in elements."""

    shape: tuple[int, ...]
    dtype: str
    strides: tuple[int, ...]
    offset: int = 0

    @staticmethod
    def of(tensor: torch.Tensor, offset: int = 0) -> Layout:
        """The layout of `tensor` put at `offset`; overlapping (expanded) strides become dense."""
        strides = tuple(tensor.stride())
        if any(step == 0 and size > 1 for step, size in zip(strides, tensor.shape, strict=True)):
            strides = contiguous_strides(tuple(tensor.shape))
        return Layout(tuple(tensor.shape), dtype_name(tensor.dtype), strides, offset)

    @staticmethod
    def dense(shape: Sequence[int], dtype: str, offset: int = 0) -> Layout:
        """A contiguous layout."""
        return Layout(tuple(shape), dtype, contiguous_strides(tuple(shape)), offset)

    @property
    def numel(self) -> int:
        count = 1
        for size in self.shape:
            count *= size
        return count

    @property
    def nbytes(self) -> int:
        """Bytes from the first to the last element."""
        if self.numel == 0:
            return 0
        span = 1 + sum((n - 1) * s for n, s in zip(self.shape, self.strides, strict=True))
        return span * DTYPES[self.dtype].itemsize

    def at(self, offset: int) -> Layout:
        """The same at another offset."""
        return Layout(self.shape, self.dtype, self.strides, offset)

    def to_json(self) -> dict[str, Any]:
        return {"shape": self.shape, "dtype": self.dtype, "strides": self.strides, "offset": self.offset}

    @staticmethod
    def from_json(value: Mapping[str, Any]) -> Layout:
        return Layout(tuple(value["shape"]), value["dtype"], tuple(value["strides"]), value["offset"])


def contiguous_strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Row-major strides, in elements."""
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    return tuple(reversed(strides))


class Block:
    """A block of anonymous shared memory, mapped here.

    The mapping lives as long as a tensor made from it; the descriptor is closed by `close`.
    """

    def __init__(self, fd: int, nbytes: int, *, writable: bool = True) -> None:
        self.fd = fd
        self.nbytes = nbytes
        if writable:
            mapped = mmap.mmap(fd, nbytes, mmap.MAP_SHARED)
        else:
            # Private and writable: torch has no read-only tensors, and a stray write stays the writer's own.
            mapped = mmap.mmap(fd, nbytes, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_WRITE)
        self._bytes = torch.frombuffer(mapped, dtype=torch.uint8)

    @classmethod
    def create(cls, name: str, nbytes: int) -> Block:
        """Allocate; pages cost nothing until they are touched."""
        nbytes = max(aligned(nbytes), mmap.PAGESIZE)
        fd = os.memfd_create(f"agentforge-{name}", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        os.ftruncate(fd, nbytes)
        return cls(fd, nbytes)

    def seal_size(self) -> None:
        """Nobody can shrink or grow it: a truncated file would kill its other users by SIGBUS."""
        fcntl.fcntl(self.fd, _F_ADD_SEALS, _F_SEAL_SHRINK | _F_SEAL_GROW)

    def seal_writes(self) -> None:
        """Whoever maps it from now on can only read; mappings made before can still write."""
        fcntl.fcntl(self.fd, _F_ADD_SEALS, _F_SEAL_SHRINK | _F_SEAL_GROW | _F_SEAL_FUTURE_WRITE)

    def raw(self, offset: int, nbytes: int) -> torch.Tensor:
        """A part as uint8.

        Raises:
            ValueError: it does not lie inside.
        """
        if offset < 0 or nbytes < 0 or offset + nbytes > self.nbytes:
            raise ValueError(f"{nbytes} bytes at {offset} do not lie in a block of {self.nbytes}")
        return self._bytes[offset : offset + nbytes]

    def tensor(self, layout: Layout) -> torch.Tensor:
        """The tensor that lies at `layout`, sharing memory.

        Raises:
            ValueError: it does not lie inside, or has an unknown dtype.
        """
        if layout.dtype not in DTYPES or len(layout.shape) > MAX_DIMENSIONS:
            raise ValueError(f"no tensor of {layout.dtype} with {len(layout.shape)} dimensions")
        dtype = DTYPES[layout.dtype]
        if layout.numel == 0:
            return torch.empty(layout.shape, dtype=dtype)
        flat = self.raw(layout.offset, layout.nbytes).view(dtype)
        return torch.as_strided(flat, layout.shape, layout.strides)

    def guard(self, offset: int) -> None:
        """Let any access to the page at `offset` kill this process by SIGSEGV."""
        address = self._bytes.data_ptr() + offset
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.mprotect(ctypes.c_void_p(address), ctypes.c_size_t(mmap.PAGESIZE), 0) != 0:
            raise OSError(ctypes.get_errno(), "mprotect")

    def close(self) -> None:
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1
