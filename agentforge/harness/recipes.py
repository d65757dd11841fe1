"""How a tensor of a slot gets its content: given, or mixed from draws, some rows at a time.

Draws lie in files of their own and contents go into files: however large, they are not resident here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import torch

from .memory import Block, Layout, aligned, contiguous_strides, dtype_name

_PIECE_BYTES = 4 << 20
_DISCRETE = 16


class Rows(Protocol):
    """A tensor that is made by rows, along its first dimension; one without dimensions is one row."""

    def rows(self, first: int, last: int) -> torch.Tensor:
        """From one index of the first dimension to another."""
        ...


Recipe = Sequence[Rows]
"""Content for all tensors of a slot."""


class Draw:
    """A tensor in a file, read by rows.

    Args:
        tensor: drawn.
        block: the file, which others may lie in too.
        offset: bytes at which it begins there.
    """

    def __init__(self, tensor: torch.Tensor, block: Block, offset: int) -> None:
        self.shape = tuple(tensor.shape)
        self.numel = tensor.numel()
        self.mixable = _mixable(tensor)
        """Floating-point values that are not a few levels (a mask, one-hot rows)."""
        self.rollable = self.mixable and tensor.shape[0] > 1
        self._block = block
        self._layout = Layout.dense(self.shape, dtype_name(tensor.dtype), offset)
        block.place(self._layout, tensor)

    def rows(self, first: int, last: int) -> torch.Tensor:
        return self._block.read(self._layout.rows(first, last))

    def exchange(self, first: int, second: int) -> None:
        """Two rows change places."""
        one, other = self.rows(first, first + 1), self.rows(second, second + 1)
        self._block.place(self._layout.rows(first, first + 1), other)
        self._block.place(self._layout.rows(second, second + 1), one)


def stored(tensors: list[torch.Tensor]) -> list[Draw]:
    """Draws in one file; the list is empty afterwards, since they may be large."""
    block = Block.create("draws", sum(aligned(t.nbytes) for t in tensors))
    draws, offset = [], 0
    while tensors:
        tensor = tensors.pop(0)
        draws.append(Draw(tensor, block, offset))
        offset += aligned(tensor.nbytes)
    return draws


@dataclass(frozen=True)
class Given:
    """A tensor as it is."""

    tensor: torch.Tensor

    def rows(self, first: int, last: int) -> torch.Tensor:
        return self.tensor[first:last] if self.tensor.dim() else self.tensor


@dataclass(frozen=True)
class Rolled:
    """A convex combination of rows with other rows of the same draw."""

    draw: Draw
    weight: float
    roll: int

    def rows(self, first: int, last: int) -> torch.Tensor:
        number = self.draw.shape[0]
        if first < number - self.roll < last:  # from here on others come from the beginning
            split = number - self.roll
            return torch.cat([self.rows(first, split), self.rows(split, last)])
        others = (first + self.roll) % number
        return self.draw.rows(first, last).lerp_(self.draw.rows(others, others + last - first), self.weight)


@dataclass(frozen=True)
class Blended:
    """A convex combination of two draws."""

    draw: Rows
    other: Rows
    weight: float

    def rows(self, first: int, last: int) -> torch.Tensor:
        return self.draw.rows(first, last).lerp_(self.other.rows(first, last), self.weight)


@dataclass(frozen=True)
class Chosen:
    """Each element from one of two draws."""

    draw: Rows
    other: Rows
    share: float
    seed: int

    def rows(self, first: int, last: int) -> torch.Tensor:
        ours = self.draw.rows(first, last)
        generator = torch.Generator().manual_seed(self.seed + first)
        chosen = torch.rand(ours.shape, generator=generator) < self.share
        return torch.where(chosen, ours, self.other.rows(first, last))


def write(content: Block, layout: Layout, made: Rows) -> None:
    """Put a tensor where it lies in a content, some rows at a time where it is large and dense."""
    number = layout.shape[0] if layout.shape else 1
    if layout.nbytes <= _PIECE_BYTES or layout.strides != contiguous_strides(layout.shape):
        content.place(layout, made.rows(0, number))
        return
    at_a_time = max(1, _PIECE_BYTES * number // layout.nbytes)
    for first in range(0, number, at_a_time):
        last = min(first + at_a_time, number)
        content.place(layout.rows(first, last), made.rows(first, last))


def _mixable(tensor: torch.Tensor) -> bool:
    if (
        tensor.dim() == 0
        or tensor.numel() == 0
        or not tensor.is_floating_point()
        or tensor.element_size() == 1
    ):
        return False
    flat = tensor.reshape(-1)
    sample = flat[:: max(1, flat.numel() // 4096)]
    return int(torch.unique(sample).numel()) > min(_DISCRETE, sample.numel() - 1)
