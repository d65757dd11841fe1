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


def alike(a: Any, b: Any) -> bool:
    """Whether two values in an answer differ by no more than rounding."""
    if not isinstance(a, torch.Tensor):
        return bool(a == b)
    if is_integer(a):
        return torch.equal(a, b)
    return measure(a, b, Bound(math.inf, 1.0, 0.0, 0.0)).relative <= _ROUNDING
