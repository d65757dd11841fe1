"""Bytes of memory that tensors cover: what several views cover, or one covers several times, counts once."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

import torch
from torch.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode

_Dims = tuple[tuple[int, int], ...]
"""Size and stride of each dimension with more than one place, largest stride first."""
_Spans = set[tuple[int, _Dims]]
"""Offset and dimensions of views of one memory."""


class Footprint(NamedTuple):
    """Places of a memory that a tensor covers, counted in its elements."""

    offset: int
    """Elements before its first one."""
    dims: _Dims
    itemsize: int


def footprint(
    shape: Sequence[int], strides: Sequence[int], itemsize: int, offset: int = 0
) -> Footprint | None:
    """Footprint of a tensor; None if it is empty."""
    if 0 in shape:
        return None
    dims = sorted(((s, n) for n, s in zip(shape, strides, strict=True) if n > 1 and s), reverse=True)
    return Footprint(offset, tuple((n, s) for s, n in dims), itemsize)


def footprint_of(value: torch.Tensor) -> Footprint | None:
    """Footprint of a real or fake tensor; None if it is empty or not dense, or if values decide its sizes."""
    if value.layout is not torch.strided:
        return None
    try:
        sizes, strides = [int(n) for n in value.shape], [int(s) for s in value.stride()]
        return footprint(sizes, strides, value.element_size(), int(value.storage_offset()))
    except GuardOnDataDependentSymNode:
        return None


def distinct_bytes(views: Collection[Footprint]) -> int:
    """Bytes that at least one of several views of the same memory covers."""
    if not views:
        return 0
    unit = min(view.itemsize for view in views)
    spans = {_in_units(view, unit) for view in views}
    repeats = 1
    while size := _common_outer(spans):
        spans = _without_outer(spans)
        repeats *= size
    first, extent = _extent(spans)
    covered = torch.zeros(extent, dtype=torch.bool, device="cpu")
    for offset, dims in spans:
        covered.as_strided([n for n, _ in dims], [s for _, s in dims], offset - first).fill_(True)
    return repeats * int(covered.count_nonzero()) * unit


def _in_units(view: Footprint, unit: int) -> tuple[int, _Dims]:
    """Offset and dimensions of a view in a unit of bytes."""
    scale = view.itemsize // unit
    parts = ((scale, 1),) if scale > 1 else ()
    return view.offset * scale, (*((n, s * scale) for n, s in view.dims), *parts)


def _common_outer(spans: _Spans) -> int:
    """Size of the outermost dimension if all views share it and its steps do not overlap; 0 otherwise.

    Then one step says how much each of them covers.
    """
    outer = {dims[:1] for _, dims in spans}
    if len(outer) > 1 or () in outer:
        return 0
    (((size, stride),),) = outer
    return size if _extent(_without_outer(spans))[1] <= stride else 0


def _without_outer(spans: _Spans) -> _Spans:
    return {(offset, dims[1:]) for offset, dims in spans}


def _extent(spans: _Spans) -> tuple[int, int]:
    """The first place, and the number of places from there to the last one."""
    first = min(offset for offset, _ in spans)
    return first, 1 + max(o + sum((n - 1) * s for n, s in dims) for o, dims in spans) - first
