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
_WEIGHTS, _SPREAD = 8191, 0.1
"""A prime number, so that they meet rows of most lengths shifted; how far they lie from their middle."""
_NEARLY = 1e-2
"""How far from 1 a sum of 16-bit probabilities may lie."""


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
        self.spread = 0.0 if _sums_to_one(tensor) else _SPREAD
        """How much weights may differ within it; probabilities stay probabilities where they do not."""
        self._block = block
        self._layout = Layout.dense(self.shape, dtype_name(tensor.dtype), offset)
        block.place(self._layout, tensor)

    def rows(self, first: int, last: int) -> torch.Tensor:
        return self._block.read(self._layout.rows(first, last))

    def mixed(self, first: int, last: int, theirs: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
        """Rows combined with others, see `mixing_weights`; the same however the tensor is cut in pieces."""
        a_row = self.numel // self.shape[0]
        return _mixed(self.rows(first, last), theirs, weights, first * a_row)

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


def mixing_weights(middle: float, spread: float, generator: torch.Generator) -> torch.Tensor:
    """Weights that differ from element to element, repeated over a tensor.

    One weight for all would let what is linear be answered by the same mixture of answers that are known.

    Args:
        middle: of all weights.
        spread: how far they may lie from it; they stay between 0 and 1.
        generator: nobody else's.
    """
    weights = torch.rand(_WEIGHTS, generator=generator).sub_(0.5).mul_(2 * spread)
    return weights.add_(middle).clamp_(0.0, 1.0)


def _mixed(ours: torch.Tensor, theirs: torch.Tensor, weights: torch.Tensor, first: int) -> torch.Tensor:
    """A convex combination, in place of `ours`, which begins `first` elements into its tensor."""
    weights = weights.roll(-(first % weights.numel())).to(ours.dtype)
    whole = ours.numel() // weights.numel() * weights.numel()
    a, b = ours.view(-1), theirs.view(-1)
    a[:whole].view(-1, weights.numel()).lerp_(b[:whole].view(-1, weights.numel()), weights)
    a[whole:].lerp_(b[whole:], weights[: a.numel() - whole])
    return ours


@dataclass(frozen=True)
class Rolled:
    """A convex combination of rows with other rows of the same draw."""

    draw: Draw
    weights: torch.Tensor
    roll: int

    def rows(self, first: int, last: int) -> torch.Tensor:
        number = self.draw.shape[0]
        if first < number - self.roll < last:  # from here on others come from the beginning
            split = number - self.roll
            return torch.cat([self.rows(first, split), self.rows(split, last)])
        others = (first + self.roll) % number
        theirs = self.draw.rows(others, others + last - first)
        return self.draw.mixed(first, last, theirs, self.weights)


@dataclass(frozen=True)
class Blended:
    """A convex combination of two draws."""

    draw: Draw
    other: Rows
    weights: torch.Tensor

    def rows(self, first: int, last: int) -> torch.Tensor:
        return self.draw.mixed(first, last, self.other.rows(first, last), self.weights)


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


def _sums_to_one(tensor: torch.Tensor) -> bool:
    """Whether the elements along its last dimension do, judged by a few rows."""
    if not tensor.is_floating_point() or tensor.dim() < 2 or 0 in tensor.shape:
        return False
    sums = tensor.reshape(-1, tensor.shape[-1])[:_DISCRETE].double().sum(1)
    return bool(((sums - 1).abs() < _NEARLY).all())
