"""How a tensor of a slot gets its content: given, or mixed from draws, some rows at a time.

Draws lie in files of their own and contents go into files: however large, they are not resident here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import torch

from ..workers.memory.shared_memory import Block, Layout, aligned, contiguous_strides, dtype_name
from .structure import Structure

_PIECE_BYTES = 4 << 20
_COLUMNS, _ROWS, _SPREAD = 8191, 8179, 0.1
"""Numbers that weights are made of, primes so that they meet rows of most lengths shifted; how far weights
lie from their middle, at most."""
_PAIRS = 16
"""Rows below which their order is kept."""
_PLAIN = Structure(mixable=True)


class Rows(Protocol):
    """A tensor that is made by rows, along its first dimension; one without dimensions is one row."""

    def rows(self, first: int, last: int) -> torch.Tensor:
        """From one index of the first dimension to another."""
        ...


Recipe = Sequence[Rows]
"""Content for all tensors of a slot."""


class Draw:
    """A tensor in a file, read by rows."""

    def __init__(self, tensor: torch.Tensor, block: Block, offset: int) -> None:
        self.shape = tuple(tensor.shape)
        self.numel = tensor.numel()
        self._block = block
        self._layout = Layout.dense(self.shape, dtype_name(tensor.dtype), offset)
        block.place(self._layout, tensor)

    def rows(self, first: int, last: int) -> torch.Tensor:
        return self._block.read(self._layout.rows(first, last))

    def rolled(self, first: int, last: int, roll: int) -> torch.Tensor:
        """Rows of the draw rolled towards its beginning; the first ones follow after the last one."""
        number = self.shape[0]
        begin, end = first + roll, last + roll
        if begin < number < end:
            return torch.cat([self.rows(begin, number), self.rows(0, end - number)])
        return self.rows(begin % number, begin % number + last - first)

    def mixed(
        self,
        first: int,
        last: int,
        theirs: torch.Tensor,
        weights: Weights,
        structure: Structure,
    ) -> torch.Tensor:
        """Rows combined with others; the same however the tensor is cut in pieces."""
        ours = self.rows(first, last)
        first_element = first * (self.numel // self.shape[0])
        if structure.finite:
            made = _mixed(ours, theirs, weights, first_element)
        else:
            # Between infinities there is no mixture; where one of two is infinite, its mask is kept.
            made = _mixed(ours.clone(), theirs, weights, first_element)
            made = torch.where((ours - theirs).isfinite(), made, ours)
        return made if structure.norm is None else structure.norm.restored(made)

    def equals(self, other: Draw) -> bool:
        """Whether two draws have the same values."""
        number = self.shape[0] if self.shape else 1
        at_a_time = max(1, _PIECE_BYTES * number // max(self._layout.nbytes, 1))
        begins = range(0, number, at_a_time)
        ends = ((n, min(n + at_a_time, number)) for n in begins)
        return all(same_values(self.rows(*part), other.rows(*part)) for part in ends)

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
class Weights:
    """Weights that differ from element to element of a tensor, taken as a matrix as wide as `columns`.

    With one weight, a linear operator's output would be the same mixture of outputs that are known. With the
    same ones in each row of the matrix, sums over its columns would be known: `rows` scales each row.
    """

    middle: float
    columns: torch.Tensor
    rows: torch.Tensor

    @staticmethod
    def drawn(middle: float, generator: torch.Generator) -> Weights:
        """At most 0.1 from their middle, at least half of that in scale."""
        columns = torch.rand(_COLUMNS, generator=generator).sub_(0.5).mul_(2 * _SPREAD)
        rows = torch.rand(_ROWS, generator=generator).mul_(0.5).add_(0.5)
        signs = torch.rand(_ROWS, generator=generator).sub_(0.5).sign_()
        return Weights(middle, columns, rows.mul_(signs))

    def of(self, first: int, count: int, dtype: torch.dtype) -> torch.Tensor:
        """Weights of some elements, from one on."""
        width = len(self.columns)
        begin, end = first // width, -(-(first + count) // width)
        rows = self.rows[torch.arange(begin, end) % len(self.rows)].to(dtype)
        grid = (rows[:, None] * self.columns.to(dtype)).add_(self.middle)
        return grid.view(-1)[first - begin * width :][:count]


def _mixed(ours: torch.Tensor, theirs: torch.Tensor, weights: Weights, first: int) -> torch.Tensor:
    """A convex combination, in place of `ours`, which begins `first` elements into its tensor."""
    flat = ours.view(-1)
    flat.lerp_(theirs.view(-1), weights.of(first, flat.numel(), ours.dtype))
    return ours


@dataclass(frozen=True)
class Rolled:
    """A convex combination of rows with other rows of the same draw."""

    draw: Draw
    weights: Weights
    roll: int
    structure: Structure = _PLAIN

    def rows(self, first: int, last: int) -> torch.Tensor:
        theirs = self.draw.rolled(first, last, self.roll)
        return self.draw.mixed(first, last, theirs, self.weights, self.structure)


@dataclass(frozen=True)
class Blended:
    """A convex combination of two draws."""

    draw: Draw
    other: Rows
    weights: Weights
    structure: Structure = _PLAIN

    def rows(self, first: int, last: int) -> torch.Tensor:
        return self.draw.mixed(first, last, self.other.rows(first, last), self.weights, self.structure)


@dataclass(frozen=True)
class Rearranged:
    """Rows of several draws in another order, each with its elements in one other order.

    Values and their number in each row stay. A tensor with one dimension is rearranged by pieces.
    """

    draws: Sequence[Draw]
    """Each row is one of them, at random."""
    columns: torch.Tensor | None
    """Order of the last dimension; None with one dimension."""
    roll: int
    seed: int
    by_element: bool = False
    """Each element is one of them, so that rows do not keep their values."""

    def rows(self, first: int, last: int) -> torch.Tensor:
        generator = torch.Generator().manual_seed(self.seed + first)
        made = [self._row_order(draw.rolled(first, last, self.roll), generator) for draw in self.draws]
        whole = made[0]
        if len(made) > 1:
            shape = whole.shape if self.by_element else (last - first, *[1] * (whole.dim() - 1))
            whole = torch.where(torch.rand(shape, generator=generator) < 0.5, *made)
        return whole if self.columns is None else whole.index_select(-1, self.columns)

    def _row_order(self, rows: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
        if rows.dim() > 1:
            few = self.draws[0].shape[0] < _PAIRS
            return rows if few else rows.index_select(0, torch.randperm(len(rows), generator=generator))
        # As a matrix: one order of a million single elements takes thirty times as long.
        width = max(1, math.isqrt(rows.numel()))
        whole = rows.numel() // width * width
        grid = rows[:whole].view(-1, width)
        grid = grid.index_select(0, torch.randperm(len(grid), generator=generator))
        grid = grid.index_select(1, torch.randperm(width, generator=generator))
        return torch.cat([grid.reshape(-1), rows[whole:]])


def between(one: Draw, other: Draw, weight: float) -> Given:
    """A number between two draws of a tensor without dimensions; one of them if it has no fraction."""
    a, b = one.rows(0, 1), other.rows(0, 1)
    if a.is_floating_point() and a.itemsize > 1:
        return Given(torch.lerp(a, b, weight))
    return Given(a if weight < 0.5 else b)


def rearranged(draws: Sequence[Draw], structure: Structure, seed: int) -> Rows:
    """A new whole of draws that cannot be mixed: few values, integers, complex numbers."""
    base, generator = draws[0], torch.Generator().manual_seed(seed)
    one = draws[seed % len(draws)]
    if base.numel < 2 or structure.constant:
        return one
    columns = torch.randperm(base.shape[-1], generator=generator) if len(base.shape) > 1 else None
    # Few rows mean different things (sources and targets of edges): each stays where it is.
    few = len(base.shape) > 1 and base.shape[0] < _PAIRS
    roll = 0 if few else int(torch.randint(base.shape[0], (), generator=generator))
    alone = not structure.independent and (few or (len(base.shape) == 1 and structure.distinct))
    return Rearranged([one] if alone else draws, columns, roll, seed, structure.independent)


def same_values(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether two tensors of one type have the same bytes."""
    return torch.equal(*(t.contiguous().reshape(-1).view(torch.uint8) for t in (one, other)))


def write(content: Block, layout: Layout, made: Rows) -> None:
    """Write a tensor to its place in a content, some rows at a time if it is large and dense."""
    number = layout.shape[0] if layout.shape else 1
    if layout.nbytes <= _PIECE_BYTES or layout.strides != contiguous_strides(layout.shape):
        content.place(layout, made.rows(0, number))
        return
    at_a_time = max(1, _PIECE_BYTES * number // layout.nbytes)
    for first in range(0, number, at_a_time):
        last = min(first + at_a_time, number)
        content.place(layout.rows(first, last), made.rows(first, last))
