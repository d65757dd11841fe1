"""Layout of a tensor in memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch

_PLAIN = (torch.Tensor, torch.nn.Parameter, torch.nn.Buffer)


class Layout(NamedTuple):
    """Captured shape, strides, dtype and device type of a tensor."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: torch.dtype
    device: str

    @classmethod
    def read(cls, entry: dict[str, Any]) -> Layout:
        """Read an entry of the plan's JSON."""
        dtype = getattr(torch, entry["dtype"])
        return cls(tuple(entry["shape"]), tuple(entry["strides"]), dtype, entry["device"])

    def holds(self, tensor: Any) -> bool:
        """True if `tensor` is a plain dense tensor with this layout; strides of size-1 dimensions are
        ignored.
        """
        # torch.export traces with tensors of its own.
        traced = torch.compiler.is_compiling()
        fake = traced and type(tensor).__name__ == "FakeTensor"
        plain = fake or type(tensor) in _PLAIN
        if not plain or tensor.dtype != self.dtype or not self._has_shape(tensor):
            return False
        if tensor.layout != torch.strided or tensor.device.type != self.device:
            return False
        if not traced and (tensor.is_conj() or tensor.is_neg()):  # the memory has other values
            return False
        return same_strides(self.shape, tensor.stride(), self.strides)

    def _has_shape(self, tensor: Any) -> bool:
        if not torch.compiler.is_compiling():
            return bool(tensor.shape == self.shape)
        # A comparison would make a size that the caller wants dynamic a constant.
        known: Any = torch.fx.experimental.symbolic_shapes.statically_known_true
        pairs = zip(tensor.shape, self.shape, strict=False)
        return tensor.ndim == len(self.shape) and all(known(size == wanted) for size, wanted in pairs)


def same_strides(shape: Sequence[int], a: Sequence[int], b: Sequence[int]) -> bool:
    """True if both strides address the same elements."""
    if tuple(a) == tuple(b) or 0 in shape:
        return True
    return all(size == 1 or i == j for size, i, j in zip(shape, a, b, strict=True))
