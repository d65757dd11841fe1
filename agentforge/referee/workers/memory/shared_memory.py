"""Shared memory between the referee and its workers, and tensors laid out in it."""

from __future__ import annotations

import ctypes
import fcntl
import math
import mmap
import os
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch

_random = secrets.SystemRandom()
_PIECES, _PIECE_BYTES = 16, 1 << 16
_libc = ctypes.CDLL(None, use_errno=True)
_libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]

_F_ADD_SEALS = 1033
_F_SEAL_SEAL, _F_SEAL_SHRINK, _F_SEAL_GROW, _F_SEAL_FUTURE_WRITE = 0x1, 0x2, 0x4, 0x10
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


def in_pages(nbytes: int) -> int:
    """`nbytes` rounded up to whole pages, at least one."""
    return max(-(-nbytes // mmap.PAGESIZE), 1) * mmap.PAGESIZE


@dataclass(frozen=True)
class Layout:
    """Place of a tensor in a block: offset in bytes, strides in elements."""

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
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes from the first to the last element."""
        if self.numel == 0:
            return 0
        span = 1 + sum((n - 1) * s for n, s in zip(self.shape, self.strides, strict=True))
        return span * self.itemsize

    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
        return DTYPES[self.dtype].itemsize

    def rows(self, first: int, last: int) -> Layout:
        """Of a dense layout, from one index of the first dimension to another; without dimensions it is one
        row, itself."""
        if not self.shape:
            return self
        row = self.strides[0] * DTYPES[self.dtype].itemsize
        return Layout.dense((last - first, *self.shape[1:]), self.dtype, self.offset + first * row)

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


class Memory:
    """Mapped memory that tensors are laid out in; it lives as long as a tensor made from it."""

    def __init__(self, mapped: mmap.mmap) -> None:
        self.nbytes = len(mapped)
        self._bytes = torch.frombuffer(mapped, dtype=torch.uint8)

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

    @property
    def _address(self) -> int:
        return self._bytes.data_ptr()


class Window(Memory):
    """A worker's own memory for the inputs of calls: mapped once, resident, at addresses that stay.

    The referee writes a call's content through the file while the worker is stopped.
    """

    def __init__(self, fd: int, nbytes: int) -> None:
        # Populated: the page faults come now and not in a timed call.
        self._mapped = mmap.mmap(fd, nbytes, mmap.MAP_SHARED | mmap.MAP_POPULATE)
        super().__init__(self._mapped)

    def raw(self, offset: int, nbytes: int) -> torch.Tensor:
        """See `Memory.raw`: a storage of its own, so that a sanitizer can detect reads beyond a tensor."""
        super().raw(offset, nbytes)
        return torch.frombuffer(self._mapped, dtype=torch.uint8, count=nbytes, offset=offset)

    def guard(self, offset: int) -> None:
        """Let any access to the page at `offset` kill this process by SIGSEGV."""
        if _libc.mprotect(self._address + offset, mmap.PAGESIZE, 0) != 0:
            raise OSError(ctypes.get_errno(), "mprotect")


class Block(Memory):
    """A block of anonymous shared memory, mapped here.

    The mapping lives as long as a tensor made from it; the descriptor is closed by `close`.
    """

    def __init__(self, fd: int, nbytes: int, *, writable: bool = True) -> None:
        self.fd = fd
        self._sealed = False
        if writable:
            mapped = mmap.mmap(fd, nbytes, mmap.MAP_SHARED)
        else:
            # Private and writable: torch has no read-only tensors, and a stray write stays the writer's own.
            mapped = mmap.mmap(fd, nbytes, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_WRITE)
        super().__init__(mapped)

    @classmethod
    def create(cls, name: str, nbytes: int) -> Block:
        """Allocate; pages cost nothing until they are touched."""
        nbytes = in_pages(nbytes)
        fd = os.memfd_create(f"agentforge-{name}", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        os.ftruncate(fd, nbytes)
        return cls(fd, nbytes)

    def write(self, content: torch.Tensor, offset: int = 0) -> None:
        """Put a dense tensor's bytes at an offset, past the mapping: fresh pages cost half as much so, and
        are not resident here."""
        view = memoryview(content.reshape(-1).view(torch.uint8).numpy())
        while view:
            # At most 2 GiB go in one call.
            view = view[os.pwrite(self.fd, view, offset + content.nbytes - len(view)) :]

    def copy(self, content: Block, offset: int) -> None:
        """Put the whole of another block at an offset."""
        self.write(content.raw(0, content.nbytes), offset)

    def place(self, layout: Layout, content: torch.Tensor) -> None:
        """Write a tensor at `layout`; bytes between its elements are zero.

        Raises:
            ValueError: it does not lie inside.
        """
        if layout.offset + layout.nbytes > self.nbytes:
            raise ValueError(f"{layout.nbytes} bytes at {layout.offset} do not lie in {self.nbytes}")
        if content.numel() and layout.strides == contiguous_strides(layout.shape):
            self.write(content.contiguous(), layout.offset)
        elif content.numel():
            span = torch.zeros(layout.nbytes // content.element_size(), dtype=content.dtype)
            torch.as_strided(span, layout.shape, layout.strides).copy_(content)
            self.write(span, layout.offset)

    def read(self, layout: Layout) -> torch.Tensor:
        """A copy of the tensor at `layout`, past the mapping.

        Raises:
            ValueError: it does not lie inside, or has an unknown dtype.
        """
        if layout.strides != contiguous_strides(layout.shape) or layout.numel == 0:
            return self.tensor(layout).clone()
        if layout.dtype not in DTYPES or layout.offset + layout.nbytes > self.nbytes:
            raise ValueError(f"{layout.nbytes} bytes at {layout.offset} do not lie in {self.nbytes}")
        tensor = torch.empty(layout.shape, dtype=DTYPES[layout.dtype])
        view = memoryview(tensor.reshape(-1).view(torch.uint8).numpy())
        while view:
            got = os.preadv(self.fd, [view], layout.offset + layout.nbytes - len(view))
            if not got:
                raise ValueError("the block has become shorter")
            view = view[got:]
        return tensor

    def read_range(self, layout: Layout, first: int, count: int) -> torch.Tensor:
        """A copy of at most `count` elements of a dense tensor at `layout`, from a flat index on."""
        count = max(0, min(count, layout.numel - first))
        place = layout.offset + first * layout.itemsize
        return self.read(Layout.dense((count,), layout.dtype, place))

    def seal_size(self) -> None:
        """Forbid a change of size: a truncated file would kill its other users by SIGBUS."""
        fcntl.fcntl(self.fd, _F_ADD_SEALS, _F_SEAL_SHRINK | _F_SEAL_GROW)

    def seal_writes(self) -> None:
        """Later mappings can only read; earlier mappings can still write.

        Further seals are forbidden too: otherwise a process with the file could add one.
        """
        if not self._sealed:
            seals = _F_SEAL_SEAL | _F_SEAL_SHRINK | _F_SEAL_GROW | _F_SEAL_FUTURE_WRITE
            fcntl.fcntl(self.fd, _F_ADD_SEALS, seals)
            self._sealed = True

    def __del__(self) -> None:
        self.close()

    def close(self) -> None:
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1


class Contents(Protocol):
    """Source of the contents of slots."""

    slot_bytes: int
    slots: int
    layouts: list[Layout]
    """Of the tensors in a slot."""

    def content(self, slot: int) -> Block:
        """What a worker is to see there."""
        ...


class InputMemory:
    """Memory for all slots of a workload, which one worker maps once."""

    def __init__(self, contents: Contents) -> None:
        self._contents = contents
        self._stride = in_pages(contents.slot_bytes)
        self._block = Block.create("inputs", self._stride * contents.slots)
        self._block.seal_size()

    @property
    def fd(self) -> int:
        """The file, for the worker."""
        return self._block.fd

    def write(self, slot: int) -> None:
        """Give the slot its content."""
        self._block.copy(self._contents.content(slot), slot * self._stride)

    def read(self, slot: int) -> list[torch.Tensor]:
        """Copies of the slot's tensors, as the worker left them."""
        offset = slot * self._stride
        return [self._block.read(x.at(offset + x.offset)) for x in self._contents.layouts]

    def changed(self, slot: int) -> bool:
        """Whether the worker has written to a slot since it was written; of large ones some pieces tell."""
        content, begin = self._contents.content(slot), slot * self._stride
        places = range(0, content.nbytes, _PIECE_BYTES)
        return any(
            os.pread(self._block.fd, _PIECE_BYTES, begin + at)[: content.nbytes - at]
            != os.pread(content.fd, _PIECE_BYTES, at)
            for at in _random.sample(places, min(_PIECES, len(places)))
        )

    def close(self) -> None:
        """Give the memory back when the worker has unmapped it."""
        self._block.close()
