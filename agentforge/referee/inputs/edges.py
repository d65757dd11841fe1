"""Contents at the edges of what draws show: ends of a range, empty rows and bags.

None of them comes by chance. A reference may define its answer there all the same.
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Collection, Iterator, Sequence

import torch

from .discrete import other_values
from .in_common import in_common
from .structure import FEW, Structure, is_coarse, is_whole, two_values
from .transforms import SHARE, Change, Content, copied_rows, some

_random = secrets.SystemRandom()
_BY_CHANCE = 0.1
"""Pairs of equal integers that chance would make, below which it is chance that there are none."""
_LOOKED_AT = 1 << 20
_LAST_BAGS = 3
_THRESHOLDS = 8
"""Integers, at most, that are tried because a reference tells them apart."""


def edges(
    structures: Sequence[Structure], tensors: Sequence[torch.Tensor], order_counts: Collection[int]
) -> list[Content]:
    """Contents for inputs whose edges draws do not show.

    Args:
        order_counts: numbers of inputs that must stay sorted.
    """
    found: list[Content] = []
    for number, (structure, tensor) in enumerate(zip(structures, tensors, strict=True)):
        if not tensor.numel() or structure.single or is_coarse(tensor):
            continue
        found += _without_one(number, structure, tensor)
        if tensor.is_complex():
            found += _turned(number, tensor)
        elif structure.mixable:
            found += _ends(number, tensor)
        elif number in order_counts:
            found += _empty_bags(number, structure, tensors)
        else:
            found += [*_whole_rows(number, tensor), *_halves(number, structure, tensor)]
            found += _holes(number, structure, tensor)
            found += _finite(number, tensor)
            found += [*_twice(number, structure, tensors), *_few_values(number, structure, tensor)]
    return [*found, *in_common(structures, tensors)]


def at_thresholds(
    thresholds: Sequence[tuple[int, int]], tensors: Sequence[torch.Tensor], order_counts: Collection[int]
) -> list[Content]:
    """Integers that a reference tells apart by a constant, in place of some, if they do not occur.

    Args:
        thresholds: numbers of inputs, each with such an integer.
        order_counts: numbers of inputs that must stay sorted.
    """
    found = []
    for number, value in thresholds:
        tensor = tensors[number]
        kind = torch.iinfo(tensor.dtype)
        if kind.min <= value <= kind.max and number not in order_counts and not bool((tensor == value).any()):
            name, change = f"some values of input {number} at {value}", some(value)
            found.append(Content(name, change, only=number, takes="integers", ties=True, whole=True))
    return found[:_THRESHOLDS]


def below_the_least(
    compared: Collection[int], tensors: Sequence[torch.Tensor], order_counts: Collection[int]
) -> list[Content]:
    """Smaller integers than any that occurs, for some: a sequence that is shorter than those of the draws.

    Args:
        compared: numbers of inputs whose integers a reference compares by their order.
        order_counts: numbers of inputs that must stay sorted.
    """
    found = []
    for number in compared:
        tensor = tensors[number]
        least = int(tensor.min()) if tensor.numel() and number not in order_counts else 0
        if least > 1:
            found.append(_below(number, least))
    return found


def _below(number: int, least: int) -> Content:
    def change(integers: torch.Tensor) -> torch.Tensor:
        smaller = torch.randint(1, min(least, 1 << 62), integers.shape).to(integers.dtype)
        return torch.where(torch.rand(integers.shape) < SHARE, smaller, integers)

    name = f"values of input {number} below its least"
    return Content(name, change, only=number, takes="integers", ties=True, whole=True)


def _turned(number: int, tensor: torch.Tensor) -> Iterator[Content]:
    """Complex numbers of which one part is zero everywhere get another part."""
    parts = torch.view_as_real(tensor)
    if not bool(parts.any(-1).any()) or all(bool(parts[..., n].any()) for n in (0, 1)):
        return

    def change(numbers: torch.Tensor) -> torch.Tensor:
        angles = torch.rand(numbers.shape, dtype=torch.float64) * (2 * math.pi)
        return numbers * torch.polar(torch.ones_like(angles), angles).to(numbers.dtype)

    yield Content(f"both parts of input {number}", change, only=number)


def _ends(number: int, tensor: torch.Tensor) -> Iterator[Content]:
    """Some values at the very ends of the range that probabilities or sines have."""
    low, high = (float(end) for end in torch.aminmax(tensor))
    if not (low >= -1 and 0.5 < high <= 1):
        return
    for end in (1.0, 0.0 if low >= 0 else -1.0):
        yield Content(f"some values of input {number} at {end:g}", some(end), only=number, ties=True)


def _empty_bags(number: int, structure: Structure, tensors: Sequence[torch.Tensor]) -> Iterator[Content]:
    """Offsets some of which are equal to the one before them, where the ends stay; and the last ones where
    another input ends."""
    if not structure.offsets:
        return
    last = int(tensors[number][-1])
    sizes = (size for n, t in enumerate(tensors) if n != number for size in t.shape)
    end = min((size for size in sizes if size >= last), default=last)

    def change(offsets: torch.Tensor) -> torch.Tensor:
        made = offsets.clone()
        inner = len(made) - 2
        chosen = {1 + _random.randrange(inner) for _ in range(max(1, int(SHARE * inner)))}
        for place in sorted(chosen):
            made[place] = made[place - 1]
        return made

    def ended(offsets: torch.Tensor) -> torch.Tensor:
        made = offsets.clone()
        made[-min(_LAST_BAGS, len(made) // 2) :] = end
        return made

    yield Content(f"some values of input {number} equal to the one before", change, only=number, takes="any")
    yield Content(f"the last values of input {number} equal", ended, only=number, takes="any")


def _whole_rows(number: int, tensor: torch.Tensor) -> Iterator[Content]:
    """Masks with a row, and an index of the first dimension, that have one of their two values alone."""
    if tensor.dim() < 2 or not two_values(tensor):
        return
    for word, value in (("least", tensor.min().item()), ("greatest", tensor.max().item())):
        name, change = f"a row of input {number} at its {word} value", _filled(value)
        yield Content(name, change, only=number, takes="any", ties=True, whole=True)


def _holes(number: int, structure: Structure, tensor: torch.Tensor) -> Iterator[Content]:
    """Masks whose rows are two runs, as padding at the end makes them: one with a hole that no sample tells,
    and the runs in the other order."""
    order = structure.order
    if order is None or not two_values(tensor):
        return
    least, greatest = tensor.min().item(), tensor.max().item()
    for word, run, hole in (("greatest", greatest, least), ("least", least, greatest)):
        name = f"a hole in a run of the {word} value of input {number}"
        yield Content(name, _a_hole(order.dim, run, hole), only=number, takes="any", whole=True)

    def reversed_(mask: torch.Tensor) -> torch.Tensor:
        return mask.flip(order.dim)

    yield Content(f"input {number} reversed", reversed_, only=number, takes="any", whole=True)


def _a_hole(dim: int, run: float, hole: float) -> Change:
    """One element between two of the value `run`, which it has too, becomes `hole`."""

    def change(mask: torch.Tensor) -> torch.Tensor:
        made = mask.clone(memory_format=torch.contiguous_format)
        rows = made.movedim(dim, -1)
        same = rows == run
        places = (same[..., 1:-1] & same[..., :-2] & same[..., 2:]).nonzero()
        if len(places):
            *row, place = places[_random.randrange(len(places))].tolist()
            rows[(*row, place + 1)] = hole
        return made

    return change


def _without_one(number: int, structure: Structure, tensor: torch.Tensor) -> Iterator[Content]:
    """Integers without one of their values: a segment, a bucket or a label that nothing has."""
    if not is_whole(tensor) or structure.offsets:
        return
    some_of_it = tensor.reshape(-1)[:_LOOKED_AT]
    values = some_of_it.unique()
    if not 3 <= len(values) <= some_of_it.numel() // 2:
        return
    place = _random.randrange(1, len(values) - 1)
    gone, instead = (int(values[n]) for n in (place, place + 1))

    def change(integers: torch.Tensor) -> torch.Tensor:
        return torch.where(integers == gone, instead, integers).to(integers.dtype)

    yield Content(
        f"input {number} without one of its values", change, only=number, takes="integers", ties=True
    )


def _few_values(number: int, structure: Structure, tensor: torch.Tensor) -> Iterator[Content]:
    """Integers with many equal ones: three different in all, or a single one in one row or picture."""
    if not is_whole(tensor) or structure.distinct or two_values(tensor):
        return
    flat = tensor.reshape(-1)
    values = flat[torch.randint(len(flat), (3,))]

    def few(integers: torch.Tensor) -> torch.Tensor:
        return values[torch.randint(3, integers.shape)]

    yield Content(
        f"three values in input {number}", few, only=number, takes="integers", ties=True, whole=True
    )

    def alike(integers: torch.Tensor) -> torch.Tensor:
        made = integers.clone(memory_format=torch.contiguous_format)
        part = made[_random.randrange(len(made))] if made.dim() > 1 else made
        part.fill_(int(values[0]))
        return made

    name = f"a part of input {number} with one value"
    yield Content(name, alike, only=number, takes="integers", ties=True, whole=True)


def _finite(number: int, tensor: torch.Tensor) -> Iterator[Content]:
    """A mask of zeros and minus infinities may be any bias."""
    if tensor.is_floating_point() and bool((tensor == -math.inf).any()):
        yield Content(f"finite values in input {number}", torch.randn_like, only=number)


def _filled(value: float) -> Change:
    def change(tensor: torch.Tensor) -> torch.Tensor:
        made, rows = copied_rows(tensor)
        rows[_random.randrange(len(rows))] = value
        if made.dim() > 2 and len(made) > 1:
            made[_random.randrange(len(made))] = value
        return made

    return change


def _halves(number: int, structure: Structure, tensor: torch.Tensor) -> Iterator[Content]:
    """Rows that choose one of many choose two by halves: their sum stays one."""
    norm = structure.norm
    if norm is None or norm.p != 1 or tensor.shape[norm.dim] < 3:
        return

    def change(chosen: torch.Tensor) -> torch.Tensor:
        return (chosen + chosen.roll(_random.randrange(1, chosen.shape[norm.dim]), norm.dim)) / 2

    yield Content(f"halves in input {number}", change, only=number, ties=True, whole=True)


def _twice(number: int, structure: Structure, tensors: Sequence[torch.Tensor]) -> Iterator[Content]:
    """Integers of so large a range that it is chance that none occurs twice; some do.

    A permutation stays one, and so does a choice of places in another input.
    """
    tensor = tensors[number]
    if not structure.distinct:
        return
    low, high = (int(end) for end in torch.aminmax(tensor))
    pairs = tensor.numel() ** 2 / 2 / (high - low + 1)
    sizes = [size for n, t in enumerate(tensors) if n != number for size in t.shape]
    if pairs > _BY_CHANCE or high < max(sizes, default=FEW):
        return

    def change(numbers: torch.Tensor) -> torch.Tensor:
        return torch.where(torch.rand(numbers.shape) < SHARE, other_values(numbers), numbers)

    yield Content(
        f"some values of input {number} twice", change, only=number, takes="any", ties=True, whole=True
    )
