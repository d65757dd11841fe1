"""The reference with its products in lower precision: the error that belongs to that precision."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from agentforge.schema import Precision

from ..workers.dispatch_mode import DispatchMode

_aten = torch.ops.aten
_OPERANDS = {
    _aten.mm.default: 0,
    _aten.bmm.default: 0,
    _aten.matmul.default: 0,
    _aten.linear.default: 0,
    _aten.addmm.default: 1,
}
"""Products by the position of their first operand; the second one follows it."""


class LowPrecision(DispatchMode):
    """Computes float32 products with a weight in lower precision, with torch's own operators.

    Args:
        weights: parameters and buffers. A product of two activations stays as it is.
    """

    def __init__(self, precision: Precision, weights: Sequence[torch.Tensor]) -> None:
        super().__init__()
        self._compute = _bfloat16 if precision == "bf16" else _int8
        self._weights = {t.untyped_storage().data_ptr() for t in weights}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        first = _OPERANDS.get(func)
        if first is None or kwargs or not self._concerns(args[first : first + 2]):
            return func(*args, **(kwargs or {}))
        return self._compute(func, args, first)

    def _concerns(self, operands: Sequence[torch.Tensor]) -> bool:
        return operands[1].untyped_storage().data_ptr() in self._weights and all(
            t.dtype is torch.float32 for t in operands
        )


def _bfloat16(func: Callable[..., torch.Tensor], args: Sequence[Any], first: int) -> torch.Tensor:
    """As under `torch.autocast`: operands and result in bfloat16."""
    low = [t.bfloat16() if isinstance(t, torch.Tensor) else t for t in args]
    return func(*low).float()


def _int8(func: Callable[..., torch.Tensor], args: Sequence[Any], first: int) -> torch.Tensor:
    """Operands rounded to 8 bits, with a scale for each row of the first and each column of the second."""
    x, weight = args[first : first + 2]
    columns = -1 if func is _aten.linear.default else -2
    rounded = _rounded(x, -1), _rounded(weight, columns)
    return func(*args[:first], *rounded, *args[first + 2 :])


def _rounded(tensor: torch.Tensor, dim: int) -> torch.Tensor:
    """To 255 equal steps along a dimension; unchanged if a value is not finite."""
    steps = tensor.abs().amax(dim, keepdim=True) / 127
    if not bool(torch.isfinite(steps).all()):
        return tensor
    return torch.where(steps > 0, (tensor / steps).round() * steps, tensor)
