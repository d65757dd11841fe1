"""Layout of a tensor in memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch.compiler import is_dynamo_compiling, is_exporting

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
        """True if `tensor` is a plain dense tensor with this layout.

        Strides of size-1 dimensions are ignored, unless torch takes only one of both for channels-last.
        """
        # torch.export traces with tensors of its own.
        traced = compiling()
        fake = traced and type(tensor).__name__ == "FakeTensor"
        plain = fake or type(tensor) in _PLAIN
        if not plain or tensor.is_nested or tensor.dtype != self.dtype or not self._has_shape(tensor):
            return False
        if tensor.layout != torch.strided or tensor.device.type != self.device:
            return False
        if not traced and (tensor.is_conj() or tensor.is_neg()):  # the memory has other values
            return False
        strides = tensor.stride()
        if not same_strides(self.shape, strides, self.strides):
            return False
        return strides == self.strides or channels_last(self.shape, strides) == channels_last(
            self.shape, self.strides
        )

    def _has_shape(self, tensor: Any) -> bool:
        if not compiling():
            return bool(tensor.shape == self.shape)
        # A comparison would make a size that the caller wants dynamic a constant.
        known: Any = torch.fx.experimental.symbolic_shapes.statically_known_true
        pairs = zip(tensor.shape, self.shape, strict=False)
        return tensor.ndim == len(self.shape) and all(known(size == wanted) for size, wanted in pairs)


def compiling() -> bool:
    """Whether this call becomes part of a graph of torch.compile or torch.export.

    `torch.compiler.is_compiling()` is true in all threads while one of them compiles anything. Dynamo takes
    the first of these for true in what it traces; the second is true in exports that are not strict.
    """
    return is_dynamo_compiling() or is_exporting()


def same_strides(shape: Sequence[int], a: Sequence[int], b: Sequence[int]) -> bool:
    """True if both strides address the same elements."""
    if tuple(a) == tuple(b) or 0 in shape:
        return True
    return all(size == 1 or i == j for size, i, j in zip(shape, a, b, strict=True))


def channels_last(shape: Sequence[int], strides: Sequence[int]) -> bool:
    """True if torch's operators give channels-last results for a tensor of at least three dimensions.

    The rule is that of `Tensor.suggest_memory_format`, which strides of size-1 dimensions decide, too. One
    dimension is convolved as two, of which the first has size 1.
    """
    if len(shape) == 3:
        (n, c, columns), (*outer, last) = shape, strides
        shape, strides = (n, c, 1, columns), (*outer, columns * last, last)
    if len(shape) not in (4, 5) or 0 in shape or strides[1] == 0:
        return False
    least = 0
    for place in (1, *range(len(shape) - 1, 1, -1), 0):
        if strides[place] < least or (place == 0 and least == strides[1]):
            return False
        least = strides[place] * shape[place]
    return True
