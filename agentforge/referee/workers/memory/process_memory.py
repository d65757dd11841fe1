"""Reads and writes tensors in another process's memory while that process is stopped.

An output that is read so was complete when the process was stopped: no work can be deferred to the reading.
"""

from __future__ import annotations

import ctypes
import errno
import os
from collections.abc import Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any

import numpy as np
import torch

from ..pytree import Leaf, LeafSpec, Part
from .shared_memory import DTYPES, Layout, contiguous_strides

Elements = list[tuple[int, "np.ndarray[Any, np.dtype[np.int64]]"]]
"""Leaves of an output, and flat indices of some elements of each."""

_BATCH = 1024
"""Most pieces of one process_vm_readv (IOV_MAX)."""
_PIECE = 1 << 30
_SPREAD = 2
"""Tensors whose span is less than this many times their size are read at once."""

_libc = ctypes.CDLL(None, use_errno=True)
for _call in (_libc.process_vm_readv, _libc.process_vm_writev):
    _call.restype = ctypes.c_ssize_t
    _call.argtypes = [
        ctypes.c_int, ctypes.c_void_p, ctypes.c_ulong, ctypes.c_void_p, ctypes.c_ulong, ctypes.c_ulong,
    ]  # fmt: skip


class Unreadable(Exception):
    """There is no such memory in that process, or it may not be written to."""


class NotAllowed(Exception):
    """This machine does not let us read or write that process."""


def allows(pid: int) -> bool:
    """Whether this machine lets us read that process."""
    try:
        read_runs(pid, [(0, 1)])
    except NotAllowed:
        return False
    except Unreadable:
        pass  # nothing lies there, and the kernel asks for rights first
    return True


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
        _read(pid, target + first, np.array([[address + first, size]], dtype=np.uint64), size)
    return tensor


def read_runs(pid: int, runs: Sequence[tuple[int, int]]) -> bytearray:
    """Some runs (address, bytes), one after the other.

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


def write_runs(pid: int, runs: Sequence[tuple[int, int]], content: bytearray) -> None:
    """Put bytes at some runs (address, bytes), one after the other: the counterpart of `read_runs`.

    Raises:
        Unreadable, NotAllowed
    """
    source = ctypes.addressof(ctypes.c_char.from_buffer(content)) if content else 0
    for first in range(0, len(runs), _BATCH):
        flat = [number for run in runs[first : first + _BATCH] for number in run]
        nbytes = sum(flat[1::2])
        _written(pid, source, (ctypes.c_uint64 * len(flat))(*flat), nbytes)
        source += nbytes


def runs_of(spec: LeafSpec, first: int, count: int) -> list[tuple[int, int]]:
    """Addresses of `count` elements of a tensor from the flat index `first` on, for `read_runs`."""
    assert spec.layout is not None
    layout, size = spec.layout, spec.dtype.itemsize
    if layout.strides == contiguous_strides(layout.shape):
        return [(spec.address + first * size, count * size)]
    steps = np.array(layout.strides, dtype=np.int64) * size
    index = np.array(np.unravel_index(np.arange(first, first + count), layout.shape))
    return [(spec.address + int(offset), size) for offset in steps @ index]


def elements_of(parts: Sequence[Part]) -> Elements:
    """The elements of flat ranges that are sorted by leaf, for `read_elements`."""
    return [
        (leaf, np.concatenate([np.arange(first, first + count) for _, first, count in own]))
        for leaf, own in groupby(parts, key=itemgetter(0))
    ]


def read_elements(pid: int, specs: Sequence[LeafSpec], elements: Elements) -> bytearray | None:
    """Read elements one by one; None if the output lacks one of them.

    This is on the clock. It takes equally long for each layout, so that no layout looks faster.

    Raises:
        Unreadable, NotAllowed
    """
    pieces = np.empty((sum(len(index) for _, index in elements), 2), dtype=np.uint64)
    done = nbytes = 0
    for leaf, index in elements:
        layout = specs[leaf].layout if leaf < len(specs) else None
        if layout is None or index.max() >= layout.numel:
            return None
        size = layout.itemsize
        places = np.full(len(index), specs[leaf].address)
        if layout.shape:
            for position, stride in zip(np.unravel_index(index, layout.shape), layout.strides, strict=True):
                places += position * (stride * size)
        pieces[done : done + len(index), 0] = places
        pieces[done : done + len(index), 1] = size
        done, nbytes = done + len(index), nbytes + size * len(index)
    taken = bytearray(nbytes)
    _read(pid, ctypes.addressof(ctypes.c_char.from_buffer(taken)), pieces, nbytes)
    return taken


def cut_parts(specs: Sequence[LeafSpec], parts: Sequence[Part], taken: bytearray) -> list[torch.Tensor]:
    """The ranges as tensors, from the bytes of `read_elements`."""
    found, offset = [], 0
    for leaf, _, count in parts:
        dtype = specs[leaf].dtype
        found.append(torch.frombuffer(taken, dtype=dtype, count=count, offset=offset).clone())
        offset += count * dtype.itemsize
    return found


def read_part(pid: int, specs: Sequence[LeafSpec], part: Part) -> torch.Tensor:
    """A flat range of an output; empty if it does not exist.

    Raises:
        Unreadable, NotAllowed
    """
    leaf, first, count = part
    if leaf >= len(specs) or not specs[leaf].holds(first, count):
        return torch.empty(0)
    layout = specs[leaf].layout
    assert layout is not None
    if layout.strides != contiguous_strides(layout.shape):
        whole = read_leaf(pid, specs[leaf]).value
        return torch.as_tensor(whole).reshape(-1)[first : first + count]
    dtype = DTYPES[layout.dtype]
    return read_flat(pid, specs[leaf].address + first * dtype.itemsize, count, dtype)


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
        size = run * dtype.itemsize
        _read(pid, tensor.data_ptr() + first * size, batch, len(batch) * size)
    return tensor


def _read(pid: int, target: int, pieces: np.ndarray, wanted: int) -> None:
    """Read pieces (address, bytes), together `wanted` bytes, one after the other to `target`."""
    local = np.array([[target, wanted]], dtype=np.uint64)
    got = _libc.process_vm_readv(pid, local.ctypes.data, 1, pieces.ctypes.data, len(pieces), 0)
    _checked(got, wanted)


def _written(pid: int, source: int, pieces: ctypes.Array[ctypes.c_uint64], nbytes: int) -> None:
    """Write `nbytes` bytes from `source` to pieces (address, bytes)."""
    local = (ctypes.c_uint64 * 2)(source, nbytes)
    _checked(_libc.process_vm_writev(pid, local, 1, pieces, len(pieces) // 2, 0), nbytes)


def _checked(got: int, wanted: int) -> None:
    """Raise if less was read or written than asked for."""
    if got == wanted:
        return
    code = ctypes.get_errno() if got < 0 else errno.EFAULT
    if code in (errno.EPERM, errno.ENOSYS):
        raise NotAllowed(os.strerror(code))
    raise Unreadable(os.strerror(code))
