"""Check that every load and store of an interpreted kernel lies inside one of its tensor arguments."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import torch

from .fake_cuda import Unsimulated

Range = tuple[int, int]


class OutOfBounds(IndexError):
    """A kernel accesses memory that belongs to none of its arguments."""


def ranges_of(arguments: Iterable[Any]) -> list[Range]:
    """Address ranges of the storages behind tensors, also those in tuples and tensor descriptors."""
    found: set[Range] = set()
    for value in arguments:
        if isinstance(value, torch.Tensor):
            storage = value.untyped_storage()
            found.add((storage.data_ptr(), storage.data_ptr() + storage.nbytes()))
        elif isinstance(value, tuple | list):
            found.update(ranges_of(value))
        elif hasattr(value, "base"):
            found.update(ranges_of([value.base]))
    return sorted(found)


def check(what: str, addresses: np.ndarray, mask: np.ndarray, size: int, ranges: list[Range]) -> None:
    """Check that all unmasked accesses lie inside one range each.

    Args:
        addresses: uint64.
        size: bytes of one access.

    Raises:
        OutOfBounds: an access lies outside.
    """
    shape = np.broadcast_shapes(addresses.shape, mask.shape)
    touched = np.broadcast_to(addresses, shape)[np.broadcast_to(mask, shape)]
    if touched.size == 0:
        return
    low, high = int(touched.min()), int(touched.max()) + size
    if any(first <= low and high <= end for first, end in ranges):
        return
    inside = np.zeros(touched.shape, dtype=bool)
    for first, end in ranges:
        inside |= (touched >= np.uint64(first)) & (touched + np.uint64(size) <= np.uint64(end))
    if not inside.all():
        outside = int(np.count_nonzero(~inside))
        raise OutOfBounds(
            f"{outside} of the {touched.size} addresses of a tl.{what} lie outside every tensor passed "
            "to the kernel: mask them"
        )


def install(interpreter: Any) -> None:
    """Patch the interpreter's builder; the launch code sets `builder.ranges` and `builder.race_detector`."""
    builder = interpreter.InterpreterBuilder
    builder.ranges = builder.race_detector = None
    loads, stores = builder.create_masked_load, builder.create_masked_store

    def load(self: Any, ptrs: Any, mask: Any, *rest: Any, **named: Any) -> Any:
        places, _ = _examine(self, "load", ptrs, mask.data)
        if self.ranges is not None:
            self.race_detector.read(places, _program(self))
        return loads(self, ptrs, mask, *rest, **named)

    def store(self: Any, ptrs: Any, value: Any, mask: Any, *rest: Any, **named: Any) -> Any:
        places, size = _examine(self, "store", ptrs, mask.data)
        if self.ranges is None:
            return stores(self, ptrs, value, mask, *rest, **named)
        bits = np.dtype(f"u{size}")
        everywhere, nothing = np.ones(places.shape, bool), np.zeros(places.shape, bits)
        before = interpreter._interpreter.load(places, everywhere, nothing, bits)
        done = stores(self, ptrs, value, mask, *rest, **named)
        same = before == interpreter._interpreter.load(places, everywhere, nothing, bits)
        self.race_detector.write(places, same, size, _program(self))
        return done

    builder.create_masked_load, builder.create_masked_store = load, store
    _install_atomics(builder)


def _examine(builder: Any, what: str, ptrs: Any, mask: np.ndarray) -> tuple[np.ndarray, int]:
    """Check an access; return the accessed addresses and the bytes of one access."""
    size = max(1, ptrs.get_element_ty().primitive_bitwidth // 8)
    mask = np.asarray(mask, dtype=bool)
    if builder.ranges is not None:
        check(what, ptrs.data, mask, size, builder.ranges)
    return np.broadcast_to(ptrs.data, np.broadcast_shapes(ptrs.data.shape, mask.shape))[mask], size


def _program(builder: Any) -> int:
    """Number of the program that runs."""
    (x, y, z), (_, height, depth) = builder.grid_idx, builder.grid_dim
    return int((x * height + y) * depth + z)


def _install_atomics(builder: Any) -> None:
    rmw, cas, to_pointer = builder.create_atomic_rmw, builder.create_atomic_cas, builder.create_int_to_ptr

    def atomic(self: Any, operation: Any, ptr: Any, value: Any, mask: Any, *rest: Any) -> Any:
        _examine(self, "atomic", ptr, mask.data)
        if self.ranges is not None:
            self.race_detector.atomic()
        return rmw(self, operation, ptr, value, mask, *rest)

    def compare(self: Any, ptr: Any, expected: Any, *rest: Any) -> Any:
        _examine(self, "atomic", ptr, np.ones_like(ptr.data, dtype=bool))
        found = cas(self, ptr, expected, *rest)
        if self.ranges is not None:
            self.race_detector.atomic()
            if self.race_detector.exchanged(changed=bool(np.any(found.data == expected.data))):
                raise Unsimulated(
                    "a program waits for another one, but the interpreter runs them one after the other"
                )
        return found

    def pointer(self: Any, src: Any, kind: Any) -> Any:
        # An address loaded from memory may point anywhere.
        self.ranges = None
        return to_pointer(self, src, kind)

    builder.create_atomic_rmw, builder.create_atomic_cas = atomic, compare
    builder.create_int_to_ptr = pointer
