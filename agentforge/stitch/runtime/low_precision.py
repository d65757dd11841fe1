"""Compute products with a weight in lower precision, from a packed copy, if the user allowed it."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import torch

from .products import Products

LOWERED = "product in lower precision"
"""Counter name of these products."""

_ZERO = 128
"""Zero point of 8-bit activations: oneDNN's kernels take unsigned ones."""
_TINY = 1e-30


class BFloat16Products(Products):
    """Operands in bfloat16; oneDNN adds in float32 and rounds the result to bfloat16."""

    counter = LOWERED

    def pack(self, matrix: torch.Tensor, rows: int) -> Any:
        """See `Products`; None if this processor has no bfloat16 kernels."""
        if not torch.ops.mkldnn._is_mkldnn_bf16_supported():
            return None
        return torch.ops.mkldnn._reorder_linear_weight(matrix.bfloat16(), rows)

    def multiply(self, x: torch.Tensor, packed: Any, bias: torch.Tensor | None) -> torch.Tensor | None:
        """See `Products`."""
        low = torch.ops.mkldnn._linear_pointwise(x.bfloat16(), packed, bias, "none", [], "")
        return low.float()


class Int8Products(Products):
    """8-bit operands with a scale for each row of the activations and each column of the result; oneDNN adds
    in int32."""

    counter = LOWERED

    def pack(self, matrix: torch.Tensor, rows: int) -> Any:
        """See `Products`; None for a weight that is not finite."""
        scales = matrix.abs().amax(1) / 127
        if not bool(torch.isfinite(scales).all()):
            return None
        scales = scales.clamp_min(_TINY)
        whole = (matrix / scales[:, None]).round_().to(torch.int8)
        packed = torch.ops.onednn.qlinear_prepack(whole, [rows, matrix.shape[1]])
        return packed, scales, torch.zeros(len(scales), dtype=torch.int32)

    def multiply(self, x: torch.Tensor, packed: Any, bias: torch.Tensor | None) -> torch.Tensor | None:
        """See `Products`; None for activations that are not finite: 8 bits have no NaN and no infinity."""
        matrix, scales, zeros = packed
        flat = x.reshape(-1, x.shape[-1])
        steps = torch.linalg.vector_norm(flat, float("inf"), 1, keepdim=True).div_(127)
        if not bool(torch.isfinite(steps.sum())):
            return None
        steps = steps.clamp_min_(_TINY)
        whole = (flat / steps).round_().add_(_ZERO).to(torch.uint8)
        found = torch.ops.onednn.qlinear_pointwise(
            whole, 1.0, _ZERO, matrix, scales, zeros, None, 1.0, 0, torch.float32, "none", [], ""
        ).mul_(steps)
        if bias is not None:
            found = found.add_(bias)
        return found.view(*x.shape[:-1], found.shape[-1])


WAYS: dict[str, type[Products]] = {"bf16": BFloat16Products, "int8": Int8Products}
"""How products are computed, by the part of an artifact's mode that says so."""


def products_for(mode: str, counts: ModuleType) -> Products:
    """How an artifact of this mode computes products."""
    return next((WAYS[way] for way in mode.split("+") if way in WAYS), Products)(counts)
