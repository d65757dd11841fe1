"""Every load and store of an interpreted kernel must lie inside a tensor that the kernel was given.

The interpreter reads and writes raw addresses; what lies beyond would corrupt the process's heap in silence.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import torch

Range = tuple[int, int]


class OutOfBounds(IndexError):
    """A kernel touches memory that belongs to none of its arguments."""


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
    """See that all unmasked accesses lie inside of one range each.

    Args:
        what: `load` or `store`, for the message.
        addresses: uint64.
        mask: which of them are accessed.
        size: bytes of one access.
        ranges: sorted, first address and end.

    Raises:
        OutOfBounds
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
            f"{outside} of the {touched.size} addresses of a tl.{what} lie outside of every tensor that "
            "the kernel was given: mask them"
        )


def install(interpreter: Any) -> None:
    """Patch the interpreter's builder; `builder.ranges` is set by whoever launches.

    Args:
        interpreter: `triton.runtime.interpreter`.
    """
    builder = interpreter.InterpreterBuilder
    builder.ranges = None
    loads, stores = builder.create_masked_load, builder.create_masked_store
    rmw, cas, to_pointer = builder.create_atomic_rmw, builder.create_atomic_cas, builder.create_int_to_ptr

    def examine(self: Any, what: str, ptrs: Any, mask: np.ndarray) -> None:
        if self.ranges is not None:
            size = max(1, ptrs.get_element_ty().primitive_bitwidth // 8)
            check(what, ptrs.data, np.asarray(mask, dtype=bool), size, self.ranges)

    def load(self: Any, ptrs: Any, mask: Any, *rest: Any, **named: Any) -> Any:
        examine(self, "load", ptrs, mask.data)
        return loads(self, ptrs, mask, *rest, **named)

    def store(self: Any, ptrs: Any, value: Any, mask: Any, *rest: Any, **named: Any) -> Any:
        examine(self, "store", ptrs, mask.data)
        return stores(self, ptrs, value, mask, *rest, **named)

    def atomic(self: Any, operation: Any, ptr: Any, value: Any, mask: Any, *rest: Any) -> Any:
        examine(self, "atomic", ptr, mask.data)
        return rmw(self, operation, ptr, value, mask, *rest)

    def compare(self: Any, ptr: Any, *rest: Any) -> Any:
        examine(self, "atomic", ptr, np.ones_like(ptr.data, dtype=bool))
        return cas(self, ptr, *rest)

    def pointer(self: Any, src: Any, kind: Any) -> Any:
        # Addresses that come out of memory: nobody knows what they may point to.
        self.ranges = None
        return to_pointer(self, src, kind)

    builder.create_masked_load, builder.create_masked_store = load, store
    builder.create_atomic_rmw, builder.create_atomic_cas = atomic, compare
    builder.create_int_to_ptr = pointer
