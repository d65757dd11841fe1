"""How a tensor of a slot gets its content: given, or mixed from draws, some rows at a time.

Draws lie in files of their own and contents go into files: however large, they are not resident here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import torch

from .memory import Block, Layout, aligned, contiguous_strides, dtype_name

_PIECE_BYTES = 4 << 20
_DISCRETE = 16


class Rows(Protocol):
    """A tensor that is made by rows, along its first dimension; one without dimensions is one row."""

    @property
    def shape(self) -> Sequence[int]: ...

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
        self._dtype = dtype_name(tensor.dtype)
        self._row = tensor.nbytes // max(self._number, 1)
        self._block, self._offset = block, offset
        block.place(Layout.dense(self.shape, self._dtype, offset), tensor)

    @property
    def _number(self) -> int:
        return self.shape[0] if self.shape else 1

    def rows(self, first: int, last: int) -> torch.Tensor:
        return self._block.read(self._layout(first, last))

    def exchange(self, first: int, second: int) -> None:
        """Two rows change places."""
        one, other = self.rows(first, first + 1), self.rows(second, second + 1)
        self._block.place(self._layout(first, first + 1), other)
        self._block.place(self._layout(second, second + 1), one)

    def _layout(self, first: int, last: int) -> Layout:
        shape = (last - first, *self.shape[1:]) if self.shape else ()
        return Layout.dense(shape, self._dtype, self._offset + first * self._row)


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

    @property
    def shape(self) -> Sequence[int]:
        return self.tensor.shape

    def rows(self, first: int, last: int) -> torch.Tensor:
        return self.tensor[first:last] if self.shape else self.tensor


@dataclass(frozen=True)
class Rolled:
    """A convex combination of rows with other rows of the same draw."""

    draw: Rows
    weight: float
    roll: int

    @property
    def shape(self) -> Sequence[int]:
        return self.draw.shape

    def rows(self, first: int, last: int) -> torch.Tensor:
        number = self.shape[0]
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

    @property
    def shape(self) -> Sequence[int]:
        return self.draw.shape

    def rows(self, first: int, last: int) -> torch.Tensor:
        return self.draw.rows(first, last).lerp_(self.other.rows(first, last), self.weight)


@dataclass(frozen=True)
class Chosen:
    """Each element from one of two draws."""

    draw: Rows
    other: Rows
    share: float
    seed: int

    @property
    def shape(self) -> Sequence[int]:
        return self.draw.shape

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
    row = layout.nbytes // number
    for first, last in _pieces(number, max(1, _PIECE_BYTES // row)):
        shape = (last - first, *layout.shape[1:]) if layout.shape else ()
        part = Layout.dense(shape, layout.dtype, layout.offset + first * row)
        content.place(part, made.rows(first, last))


def _pieces(number: int, at_a_time: int) -> Iterator[tuple[int, int]]:
    for first in range(0, number, at_a_time):
        yield first, min(first + at_a_time, number)


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
