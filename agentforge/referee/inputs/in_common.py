"""Contents in which inputs have something in common: rows, places of infinities, digits that add up."""

from __future__ import annotations

import math
import random
import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch

from .structure import Structure, is_whole, two_values
from .transforms import SHARE, Content, copied_rows, some

_MISSED = 10
"""Mean distances between neighbouring draws that an end of a range may lie beyond all of them."""


def in_common(structures: Sequence[Structure], tensors: Sequence[torch.Tensor]) -> Iterator[Content]:
    """Contents for several inputs together, which no draw of each alone shows."""
    yield from _complements(structures, tensors)
    yield from _rows_in_common(structures, tensors)
    yield from _infinities_in_common(structures, tensors)


@dataclass(frozen=True)
class RowsInCommon(Content):
    """Some rows of one input are also another one's."""

    source: int = 0
    """The number of the input that they come from."""

    def apply(self, tensors: Sequence[torch.Tensor]) -> None:
        assert self.only is not None
        tensor, source = tensors[self.only], tensors[self.source]
        (made, rows), others = copied_rows(tensor), source.reshape(-1, source.shape[-1])
        places = torch.randperm(len(rows))[: max(1, int(SHARE * len(rows)))]
        rows[places] = others[torch.randint(len(others), (len(places),))]
        tensor.copy_(made)


def _rows_in_common(structures: Sequence[Structure], tensors: Sequence[torch.Tensor]) -> Iterator[Content]:
    """Each input takes rows from the first other one before it that has as long rows of its type."""

    def rows_of(number: int) -> tuple[torch.dtype, int] | None:
        tensor, structure = tensors[number], structures[number]
        alone = not structure.mixable or structure.fragile or tensor.dim() < 2 or not tensor.numel()
        return None if alone or tensor.shape[-1] < 2 else (tensor.dtype, tensor.shape[-1])

    for number in range(len(tensors)):
        kind = rows_of(number)
        source = next((n for n in range(number) if kind is not None and rows_of(n) == kind), None)
        if source is not None:
            name = f"rows of input {source} in input {number}"
            yield RowsInCommon(name, torch.clone, only=number, ties=True, source=source)


@dataclass(frozen=True)
class Complements(Content):
    """Integers that make, with another input's at the same place, the largest one of their range, or one
    more: a carry from one element to the next runs through all of them."""

    source: int = 0
    """The number of the other input."""
    top: int = 0

    def apply(self, tensors: Sequence[torch.Tensor]) -> None:
        assert self.only is not None
        tensor = tensors[self.only]
        least, most = torch.aminmax(tensor)
        one_more = torch.rand(tensor.shape) < SHARE
        tensor.copy_((self.top - tensors[self.source] + one_more).clamp_(int(least), int(most)))


def _complements(structures: Sequence[Structure], tensors: Sequence[torch.Tensor]) -> Iterator[Content]:
    """Pairs of neighbours among the inputs that hold digits of one base."""
    tops = [
        _largest_digit(t) if s.order is None and (s.independent or not s.distinct) else 0
        for s, t in zip(structures, tensors, strict=True)
    ]
    for number in range(1, len(tensors)):
        a, b = tensors[number - 1], tensors[number]
        if tops[number] and tops[number] == tops[number - 1] and a.shape == b.shape and a.dtype == b.dtype:
            name = f"input {number} as the complement of input {number - 1}"
            yield Complements(
                name,
                torch.clone,
                only=number,
                takes="integers",
                whole=True,
                source=number - 1,
                top=tops[number],
            )


def _largest_digit(tensor: torch.Tensor) -> int:
    """One less than the power of 2 or 10 that integers from 0 seem to be drawn below; 0 if it is none."""
    if not is_whole(tensor) or two_values(tensor):
        return 0
    least, most = (int(end) for end in torch.aminmax(tensor))
    tops = [2**n - 1 for n in range(2, 64)] + [10**n - 1 for n in range(1, 19)]
    top = min((t for t in tops if t >= most), default=0)
    chance = _MISSED * top / tensor.numel()
    return top if 0 <= least <= chance and top - most <= chance else 0


@dataclass(frozen=True)
class InfinitiesInCommon(Content):
    """Inputs of one shape have an infinity at the same places."""

    value: float = math.inf
    numbers: tuple[int, ...] = ()

    def apply(self, tensors: Sequence[torch.Tensor]) -> None:
        seed = secrets.randbits(64)
        for number in self.numbers:
            tensors[number].copy_(some(self.value, random.Random(seed))(tensors[number]))


def _infinities_in_common(
    structures: Sequence[Structure], tensors: Sequence[torch.Tensor]
) -> Iterator[Content]:
    """Minus infinities only where all of them have negative values, as a logarithm does."""
    groups: dict[tuple[int, ...], list[int]] = {}
    for number, (structure, tensor) in enumerate(zip(structures, tensors, strict=True)):
        if structure.mixable and not structure.fragile and tensor.is_floating_point() and tensor.numel():
            groups.setdefault(tuple(tensor.shape), []).append(number)
    for numbers in groups.values():
        if len(numbers) < 2:
            continue
        name = f"in inputs {' and '.join(map(str, numbers))} at the same places"
        signed = all(bool((tensors[n] < 0).any()) for n in numbers)
        for word, value in (("infinities", math.inf), ("minus infinities", -math.inf))[: 1 + signed]:
            yield InfinitiesInCommon(
                f"{word} {name}",
                torch.clone,
                defined="infinite",
                ties=True,
                value=value,
                numbers=tuple(numbers),
            )
