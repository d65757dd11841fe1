"""Reads tensors out of another process's memory, where that process lies stopped and cannot help or hinder.

An output that is read so must have been complete when the process was stopped: nothing that a worker does
when it is asked for bytes can be work put off until the clock has stood still.
"""

from __future__ import annotations

import ctypes
import errno
import os
from collections.abc import Sequence

import numpy as np
import torch

from .leaves import Leaf, LeafSpec
from .memory import DTYPES, Layout, contiguous_strides

_BATCH = 1024
"""Most pieces of one process_vm_readv (IOV_MAX)."""
_PIECE = 1 << 30
_SPREAD = 2
"""Tensors whose first and last element lie less than so many times their size apart are read at once."""

_libc = ctypes.CDLL(None, use_errno=True)
_libc.process_vm_readv.restype = ctypes.c_ssize_t
_libc.process_vm_readv.argtypes = [
    ctypes.c_int, ctypes.c_void_p, ctypes.c_ulong, ctypes.c_void_p, ctypes.c_ulong, ctypes.c_ulong,
]  # fmt: skip


class Unreadable(Exception):
    """There is no such memory in that process."""


class NotAllowed(Exception):
    """This machine does not let us read that process."""


def read_leaf(pid: int, spec: LeafSpec) -> Leaf:
    """A leaf with a tensor of our own.

    Raises:
        Unreadable, NotAllowed
    """
    if spec.layout is None:
        return Leaf(spec.path, spec.value)
    return Leaf(spec.path, read_tensor(pid, spec.address, spec.layout))


def read_tensor(pid: int, address: int, layout: Layout) -> torch.Tensor:
    """A dense copy of a tensor that lies at `address` in process `pid`.

    Raises:
        Unreadable, NotAllowed
    """
    dtype = DTYPES[layout.dtype]
    if layout.numel == 0:
        return torch.empty(layout.shape, dtype=dtype)
    if layout.strides == contiguous_strides(layout.shape):
        return read_flat(pid, address, layout.numel, dtype).reshape(layout.shape)
    if layout.nbytes <= _SPREAD * layout.numel * dtype.itemsize:
        span = read_flat(pid, address, layout.nbytes // dtype.itemsize, dtype)
        return torch.as_strided(span, layout.shape, layout.strides).contiguous()
    return _gathered(pid, address, layout, dtype)


def read_flat(pid: int, address: int, count: int, dtype: torch.dtype) -> torch.Tensor:
    """`count` elements that lie one after the other.

    Raises:
        Unreadable, NotAllowed
    """
    tensor = torch.empty(count, dtype=dtype)
    nbytes, target = count * dtype.itemsize, tensor.data_ptr()
    for first in range(0, nbytes, _PIECE):
        size = min(_PIECE, nbytes - first)
        _read(pid, target + first, np.array([[address + first, size]], dtype=np.uint64))
    return tensor


def read_runs(pid: int, runs: Sequence[tuple[int, int]]) -> bytearray:
    """Some runs (address, bytes), one after the other. It is done on the clock: plain and quick.

    Raises:
        Unreadable, NotAllowed
    """
    taken = bytearray(sum(nbytes for _, nbytes in runs))
    target = ctypes.addressof(ctypes.c_char.from_buffer(taken))
    for first in range(0, len(runs), _BATCH):
        batch = runs[first : first + _BATCH]
        flat = [number for run in batch for number in run]
        pieces = (ctypes.c_uint64 * len(flat))(*flat)
        nbytes = sum(flat[1::2])
        local = (ctypes.c_uint64 * 2)(target, nbytes)
        _checked(_libc.process_vm_readv(pid, local, 1, pieces, len(batch), 0), nbytes)
        target += nbytes
    return taken


def runs_of(spec: LeafSpec, first: int, count: int) -> list[tuple[int, int]]:
    """Where `count` elements of a tensor lie from the flat index `first` on, for `read_runs`."""
    assert spec.layout is not None
    layout, size = spec.layout, spec.dtype.itemsize
    if layout.strides == contiguous_strides(layout.shape):
        return [(spec.address + first * size, count * size)]
    steps = np.array(layout.strides, dtype=np.int64) * size
    index = np.array(np.unravel_index(np.arange(first, first + count), layout.shape))
    return [(spec.address + int(offset), size) for offset in steps @ index]


def _gathered(pid: int, address: int, layout: Layout, dtype: torch.dtype) -> torch.Tensor:
    """Run by run: a column of a large matrix is far smaller than what it spans."""
    run, inner = 1, len(layout.shape)
    while inner and layout.strides[inner - 1] == run:
        inner -= 1
        run *= layout.shape[inner]
    starts = np.zeros(1, dtype=np.uint64)
    for size, stride in zip(layout.shape[:inner], layout.strides[:inner], strict=True):
        steps = np.arange(size, dtype=np.uint64) * np.uint64(stride * dtype.itemsize)
        starts = (starts[:, None] + steps[None, :]).reshape(-1)
    pieces = np.empty((len(starts), 2), dtype=np.uint64)
    pieces[:, 0], pieces[:, 1] = starts + np.uint64(address), run * dtype.itemsize
    tensor = torch.empty(layout.shape, dtype=dtype)
    for first in range(0, len(pieces), _BATCH):
        batch = np.ascontiguousarray(pieces[first : first + _BATCH])
        _read(pid, tensor.data_ptr() + first * run * dtype.itemsize, batch)
    return tensor


def _read(pid: int, target: int, pieces: np.ndarray) -> None:
    """Read pieces (address, bytes) one after the other to `target`."""
    wanted = int(pieces[:, 1].sum())
    local = np.array([[target, wanted]], dtype=np.uint64)
    got = _libc.process_vm_readv(pid, local.ctypes.data, 1, pieces.ctypes.data, len(pieces), 0)
    _checked(got, wanted)


def _checked(got: int, wanted: int) -> None:
    """Raise where a read did not give all."""
    if got == wanted:
        return
    code = ctypes.get_errno() if got < 0 else errno.EFAULT
    if code in (errno.EPERM, errno.ENOSYS):
        raise NotAllowed(os.strerror(code))
    raise Unreadable(os.strerror(code))
