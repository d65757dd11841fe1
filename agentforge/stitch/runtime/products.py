"""Products with a weight by oneDNN, from a packed copy of the weight."""

from __future__ import annotations

from types import ModuleType
from typing import Any, NamedTuple

import torch
from torch.utils.weak import WeakTensorKeyDictionary

PACKED = "packed product"
"""What such products are counted as."""

_SAMPLES = 16


class _Packed(NamedTuple):
    """A weight laid out for one number of rows, and by what one sees that the weight has not changed."""

    packed: torch.Tensor
    address: int
    version: int
    samples: torch.Tensor
    """Some elements where they lie."""
    values: torch.Tensor
    """What they were."""


class Products:
    """Computes `linear` from packed weights, which it makes when it first meets a weight.

    Eager's float32 products are the BLAS library's, which on processors that it was not made for leaves much
    of them idle; oneDNN's kernels are generated for the processor, and read a weight laid out for them.
    Packed weights go when their weights do. A weight is packed anew where it was written to in place, lies
    elsewhere, or some of its elements differ: `.data` can be written to without a trace.

    Args:
        counts: the module that counts all kernels' calls.
    """

    def __init__(self, counts: ModuleType) -> None:
        self._counts = counts
        self._kept: Any = WeakTensorKeyDictionary()

    def __call__(
        self, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, transposed: bool
    ) -> torch.Tensor:
        """`x @ weight.T + bias`, or `x @ weight + bias`.

        Args:
            x: float32, any leading dimensions, on the CPU.
            weight: float32, two-dimensional.
            bias: one number a column of the result, contiguous, or None.
            transposed: the weight is multiplied as it is.
        """
        if weight.is_inference() or not weight.is_contiguous() or not torch.backends.mkldnn.is_available():
            return product(x, weight, bias, transposed)
        packed = self._packed(weight, transposed, x.numel() // x.shape[-1])
        self._counts.count(PACKED)
        return torch.ops.mkldnn._linear_pointwise(x, packed, bias, "none", [], "")

    def _packed(self, weight: torch.Tensor, transposed: bool, rows: int) -> torch.Tensor:
        forms = self._kept.get(weight)
        if forms is None:
            forms = self._kept[weight] = {}
        found = forms.get((transposed, rows))
        if (
            found is None
            or found.address != weight.data_ptr()
            or found.version != weight._version
            or not torch.equal(found.samples, found.values)
        ):
            found = forms[transposed, rows] = _pack(weight, transposed, rows)
        return found.packed


def product(
    x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, transposed: bool
) -> torch.Tensor:
    """The same, as torch does it."""
    return torch.nn.functional.linear(x, weight.t() if transposed else weight, bias)


def _pack(weight: torch.Tensor, transposed: bool, rows: int) -> _Packed:
    with torch.inference_mode(False), torch.no_grad():
        matrix = weight.detach()
        version = weight._version  # before it is read: what another thread writes meanwhile is seen later
        count = min(_SAMPLES, matrix.numel())
        samples = matrix.as_strided((count,), (max((matrix.numel() - 1) // max(count - 1, 1), 1),))
        values = samples.clone()
        packed = torch.ops.mkldnn._reorder_linear_weight(
            matrix.t().contiguous() if transposed else matrix, rows
        )
        return _Packed(packed, matrix.data_ptr(), version, samples, values)
