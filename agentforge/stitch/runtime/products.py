"""Compute products and convolutions with a weight by oneDNN, from a packed copy of the weight; products also
in lower precision, if the user allowed it."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from types import ModuleType
from typing import Any, NamedTuple

import torch
from torch.utils.weak import WeakTensorKeyDictionary

from .derived import Contents, is_derived

PACKED = "packed product"
"""Counter name of these products and convolutions."""
LOWERED = "product in lower precision"
"""Counter name of these products."""

_ZERO = 128
"""Zero point of 8-bit activations: oneDNN's kernels take unsigned ones."""
_TINY = 1e-30

EPILOGUES: dict[str, Callable[..., torch.Tensor]] = {
    "none": lambda result: result,
    "swish": torch.nn.functional.silu,
    "hardswish": torch.nn.functional.hardswish,
    "sigmoid": torch.sigmoid,
    "tanh": torch.tanh,
    "add": torch.add,
    "mul": torch.mul,
}
"""What follows a convolution, by oneDNN's name; GELU has two algorithms."""


class _Packed(NamedTuple):
    """A packed weight, and what detects a change of the weight."""

    packed: Any
    contents: Contents


class Products:
    """Computes `linear` and `conv2d` from packed weights; packs a weight at its first use.

    A weight is packed again if it was written in place, moved, or has other content: writes through `.data`
    and NumPy do not change its version, so each call sums the whole weight.
    """

    counter = PACKED
    """Name that each product is counted by."""

    def __init__(self, counts: ModuleType) -> None:
        self._counts = counts
        self.runs = 0
        """Results computed from packed weights."""
        self._kept: Any = WeakTensorKeyDictionary()

    def __call__(
        self, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, transposed: bool
    ) -> torch.Tensor:
        """Compute `x @ weight.T + bias`, or `x @ weight + bias` if `transposed`.

        Args:
            x: float32, any leading dimensions, on the CPU.
            weight: float32, two-dimensional.
            bias: one value per column of the result, contiguous, or None.
        """
        if not _packable(weight):
            return product(x, weight, bias, transposed)
        rows = x.numel() // x.shape[-1]

        def pack(matrix: torch.Tensor) -> Any:
            return self.pack(matrix.t().contiguous() if transposed else matrix, rows)

        packed = self._packed(weight, (transposed, rows), pack)
        found = None if packed is None else self.multiply(x, packed, bias)
        if found is None:
            return product(x, weight, bias, transposed)
        self._count(self.counter)
        return found

    def pack(self, matrix: torch.Tensor, rows: int) -> Any:
        """The packed form of `matrix` (columns of the result x columns of `x`), for a number of rows; None if
        there is none."""
        return torch.ops.mkldnn._reorder_linear_weight(matrix, rows)

    def multiply(self, x: torch.Tensor, packed: Any, bias: torch.Tensor | None) -> torch.Tensor | None:
        """The product with a packed weight; None if it must be computed by torch."""
        return torch.ops.mkldnn._linear_pointwise(x, packed, bias, "none", [], "")

    def convolution(
        self,
        x: torch.Tensor,
        weight: torch.Tensor,
        bias: torch.Tensor | None,
        stride: list[int],
        padding: list[int],
        dilation: list[int],
        groups: int,
        epilogue: str = "none",
        algorithm: str = "",
        other: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """Compute `conv2d` and an epilogue; the result is in channels-last layout.

        Args:
            x: float32, in channels-last layout, on the CPU.
            epilogue, algorithm: as oneDNN names them; see `followed`.
            other: second operand of the epilogue, as the result lies in memory.
        """
        if not _packable(weight):
            return convolution(x, weight, bias, stride, padding, dilation, groups, epilogue, algorithm, other)
        places = padding, stride, dilation, groups

        def pack(filters: torch.Tensor) -> torch.Tensor:
            return torch.ops.mkldnn._reorder_convolution_weight(filters, *places, list(x.shape))

        packed = self._packed(weight, (*map(str, places), x.shape), pack)
        self._count(PACKED)
        compute = torch.ops.mkldnn._convolution_pointwise
        if other is None:
            return compute(x, packed, bias, *places, epilogue, [], algorithm)
        other = other.contiguous(memory_format=torch.channels_last)
        return compute.binary(x, other, packed, bias, *places, epilogue, None, None, [], None)

    def forget(self) -> None:
        """Free all packed weights."""
        self._kept.clear()

    def _count(self, name: str) -> None:
        self.runs += 1
        self._counts.count(name)

    def _packed(self, weight: torch.Tensor, form: Hashable, pack: Callable[[torch.Tensor], Any]) -> Any:
        forms = self._kept.get(weight)
        if forms is None:
            forms = self._kept[weight] = {}
        found = forms.get(form)
        if found is None or not (is_derived(weight) or found.contents.untouched((weight,))):
            with torch.inference_mode(False), torch.no_grad():
                # Contents first: a concurrent write is noticed at the next call.
                contents = Contents(() if is_derived(weight) else (weight,))
                found = forms[form] = _Packed(pack(weight.detach()), contents)
        return found.packed


def _packable(weight: torch.Tensor) -> bool:
    return not weight.is_inference() and weight.is_contiguous() and torch.backends.mkldnn.is_available()


def product(
    x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, transposed: bool
) -> torch.Tensor:
    """The same product computed by torch."""
    return torch.nn.functional.linear(x, weight.t() if transposed else weight, bias)


def convolution(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, *rest: Any) -> torch.Tensor:
    """The same convolution and epilogue computed by torch; `rest` is as in `Products.convolution`."""
    return followed(torch.conv2d(x, weight, bias, *rest[:4]), *rest[4:])


def followed(
    result: torch.Tensor, epilogue: str = "none", algorithm: str = "", other: torch.Tensor | None = None
) -> torch.Tensor:
    """A result after an epilogue that torch computes apart.

    Args:
        epilogue: `none`, `gelu`, `swish`, `hardswish`, `sigmoid`, `tanh`; `add` or `mul` with `other`.
        algorithm: of GELU, `none` or `tanh`.
    """
    if epilogue == "gelu":
        return torch.nn.functional.gelu(result, approximate=algorithm)
    apply = EPILOGUES[epilogue]
    return apply(result) if other is None else apply(result, other)


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
