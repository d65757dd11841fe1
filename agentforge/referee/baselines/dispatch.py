"""Modes that watch, or change, the operators that a reference runs."""

from __future__ import annotations

import math
from typing import Any

import torch

from ..comparison.tolerance import Bound, measure
from ..workers.dispatch_mode import DispatchMode

_ROUNDING = 1e-2
"""Relative change of an answer above which it is none of rounding."""


def is_integer(value: Any) -> bool:
    """Whether it is a tensor of integers or booleans."""
    return isinstance(value, torch.Tensor) and not (value.is_floating_point() or value.is_complex())


SIGNS: dict[str, tuple[int | None, int | None]] = {
    "aten::linalg_qr": (0, 1),
    "aten::_linalg_svd": (0, 2),
    "aten::_linalg_eigh": (1, None),
    "aten::linalg_eig": (1, None),
}
"""Operators whose vectors may all have the other sign: which results have them as columns, and as rows."""


class OtherSigns(DispatchMode):
    """Gives every second vector of such a decomposition the other sign: it is as right as before."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        columns, rows = SIGNS.get(func._schema.name, (None, None))
        found = [(result[n], dim) for n, dim in ((columns, -1), (rows, -2)) if n is not None]
        found = [(tensor, dim) for tensor, dim in found if tensor.numel()]
        for tensor, dim in found:
            count = min(other.shape[d] for other, d in found)
            tensor.narrow(dim, 0, count).transpose(dim, -1)[..., ::2].neg_()
        return result


_OPEN = ("topk", "kthvalue", "median", "nanmedian", "mode", "cummax", "cummin")
"""Operators whose order among equal values torch leaves open; `sort` too, unless it is stable."""
_RUNNING = ("cummax", "cummin")
"""Those that read a dimension from its beginning."""


def leaves_order_open(func: Any, kwargs: Any) -> bool:
    """Whether an operator orders, and torch promises no order among equal values."""
    name = func._schema.name.removeprefix("aten::")
    return name in _OPEN or (name == "sort" and not (kwargs or {}).get("stable", False))


def _dimension(func: Any, args: Any, kwargs: Any) -> int | None:
    """The dimension that an operator orders along; None if it gives no places along one."""
    names = [x.name for x in func._schema.arguments]
    if "dim" not in names or not args[0].dim():
        return None
    given = dict(zip(names, args, strict=False)) | (kwargs or {})
    return int(given.get("dim", -1))


class OtherOrder(DispatchMode):
    """Takes the last of equal values first, where torch leaves the order among them open."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        dim = _dimension(func, args, kwargs) if leaves_order_open(func, kwargs) else None
        if dim is None or "out" in func._overloadname or func._schema.name[6:] in _RUNNING:
            return func(*args, **(kwargs or {}))
        values, places = func(args[0].flip(dim), *args[1:], **(kwargs or {}))
        return values, args[0].shape[dim] - 1 - places


class NextPlaces(DispatchMode):
    """Gives the next place instead of each one that one of these operators found.

    Args:
        number: of the operator, among those that leave an order open.
    """

    def __init__(self, number: int) -> None:
        super().__init__()
        self._left = number

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if leaves_order_open(func, kwargs):
            dim = _dimension(func, args, kwargs)
            if self._left == 0 and dim is not None and args[0].shape[dim]:
                result[1].add_(1).remainder_(args[0].shape[dim])
            self._left -= 1
        return result


def alike(a: Any, b: Any) -> bool:
    """Whether two values in an answer differ by no more than rounding."""
    if not isinstance(a, torch.Tensor):
        return bool(a == b)
    if is_integer(a):
        return torch.equal(a, b)
    return measure(a, b, Bound(math.inf, 1.0, 0.0, 0.0)).relative <= _ROUNDING


def same(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Whether two tensors have the same shape and values; NaN is the same as NaN."""
    return a.shape == b.shape and bool(((a == b) | ((a != a) & (b != b))).all())
