"""Other contents of inputs that vary little: integers, booleans, tensors of few values, sorted tensors.

Integers may be places or labels, so these contents use values that occur, or values below one that occurs.
Only integers that a reference computes with are made larger, or negative.
"""

from __future__ import annotations

import random
import secrets
from collections.abc import Collection, Iterator, Sequence

import torch

from .structure import Order, Structure, is_coarse, is_whole, two_values
from .transforms import Change, Content

_random = secrets.SystemRandom()
_PAIRS_TRIED, _EXCHANGED = 4096, 8
_DISTINCT_MOST = 1 << 18
"""Distinct integers that are drawn anew, at most."""
_CHAIN = 64
"""Columns of a chain."""
LARGER, BEYOND_32_BITS = 1024, 1 << 33
A_FEW = (1.5, 4)
"""Times that integers are made larger."""


def _in_another_order(tensor: torch.Tensor) -> torch.Tensor:
    flat = tensor.reshape(-1)
    return flat[torch.randperm(flat.numel())].view(tensor.shape)


def other_values(tensor: torch.Tensor) -> torch.Tensor:
    """Each value replaced by one that occurs in the tensor."""
    flat = tensor.reshape(-1)
    return flat[torch.randint(flat.numel(), flat.shape)].view(tensor.shape)


def _exchanged(tensor: torch.Tensor) -> torch.Tensor:
    """A few values change places: no sample of a tensor tells."""
    flat = tensor.reshape(-1).clone()
    one, other = torch.randint(flat.numel(), (2, _PAIRS_TRIED))
    differ = torch.nonzero(flat[one] != flat[other])[:_EXCHANGED, 0]
    for i, j in zip(one[differ].tolist(), other[differ].tolist(), strict=True):
        flat[[i, j]] = flat[[j, i]]
    return flat.view(tensor.shape)


def _exchanged_in_rows(tensor: torch.Tensor) -> torch.Tensor:
    """A few values change places with others of their row: no sum of a row tells."""
    rows = tensor.reshape(-1, tensor.shape[-1]).clone()
    row, one, other = (torch.randint(n, (_PAIRS_TRIED,)) for n in (len(rows), *2 * rows.shape[1:]))
    differ = torch.nonzero(rows[row, one] != rows[row, other])[:_EXCHANGED, 0]
    for i, j, k in zip(*(places[differ].tolist() for places in (row, one, other)), strict=True):
        rows[i, [j, k]] = rows[i, [k, j]]
    return rows.view(tensor.shape)


def _between(least: int) -> Change:
    """From `least` to the one value of a tensor."""

    def change(tensor: torch.Tensor) -> torch.Tensor:
        if tensor.dtype == torch.bool:
            return torch.rand(tensor.shape) < 0.5
        low, high = sorted((least, int(tensor.reshape(-1)[0])))
        return torch.randint(low, min(high, 1 << 62) + 1, tensor.shape).to(tensor.dtype)

    return change


def _in_the_same_order(order: Order, structure: Structure) -> Change:
    """Other sorted values. The ends stay: offsets end where another tensor does."""

    def change(tensor: torch.Tensor) -> torch.Tensor:
        last = tensor.shape[order.dim] - 1
        made = _distinct(tensor) if structure.distinct else other_values(tensor)
        made = made.sort(order.dim, order.descending).values
        for end in (0, last):
            made.select(order.dim, end).copy_(tensor.select(order.dim, end))
        return made

    return change


def _distinct(tensor: torch.Tensor) -> torch.Tensor:
    """As many distinct integers between the ends of a tensor; itself if there are too few or too many."""
    low, high = int(tensor.min()), int(tensor.max())
    number = tensor.numel()
    if number > _DISTINCT_MOST or high - low < number:
        return tensor.clone()
    inner = random.Random(secrets.randbits(64)).sample(range(low + 1, high), number - 2)
    return torch.tensor([low, *inner, high]).to(tensor.dtype).view(tensor.shape)


def _chains(number: int, tensor: torch.Tensor) -> Iterator[Content]:
    """Columns of integers that follow one another, most of them where another column ends: the edges of long
    roads, in random order. What spreads from one to the next takes many rounds."""
    low, high = (int(end) for end in torch.aminmax(tensor))
    if tensor.dim() < 2 or min(tensor.shape[-2:]) < 2 or high - low < _CHAIN:
        return
    upright = tensor.shape[-1] < tensor.shape[-2]  # edges are rows

    def change(integers: torch.Tensor) -> torch.Tensor:
        rows, columns = sorted(integers.shape[-2:])
        steps = torch.randperm(columns) % ((high - low + 1) // (_CHAIN + 1) * _CHAIN)
        first = steps + steps // _CHAIN
        made = low + (first + torch.arange(rows)[:, None]) % (high - low + 1)
        return (made.mT if upright else made).to(integers.dtype).expand(integers.shape)

    yield Content(f"input {number} in chains", change, only=number, takes="integers", whole=True, timed=False)


def discrete(
    structures: Sequence[Structure], tensors: Sequence[torch.Tensor], order_counts: Collection[int]
) -> list[Content]:
    """Contents for the inputs that have few values, are integers, or are sorted without need.

    Args:
        order_counts: numbers of inputs that must stay sorted.
    """
    found: list[Content] = []
    for number, (structure, tensor) in enumerate(zip(structures, tensors, strict=True)):
        if tensor.numel() and not tensor.is_complex() and not is_coarse(tensor):
            counts = number in order_counts and not (structure.single or two_values(tensor))
            found += _of_input(number, structure, tensor, counts=counts)
    return found


def _of_input(number: int, structure: Structure, tensor: torch.Tensor, *, counts: bool) -> Iterator[Content]:
    it, order = f"input {number}", structure.order
    floats = tensor.is_floating_point()
    moves = not (structure.single or counts) and (not structure.mixable or order is not None)
    if moves:  # first, while a solution may still keep what it made of the usual values
        if tensor.dim() > 1:
            name = f"a few values of {it} exchanged in rows"
            yield Content(name, _exchanged_in_rows, only=number, takes="any", whole=True)
        yield Content(f"a few values of {it} exchanged", _exchanged, only=number, takes="any")
    if is_whole(tensor) and order is None and not structure.distinct:
        yield from _chains(number, tensor)
    if structure.single:
        if not floats:
            for least in (0, 1):
                name = f"values of {it} between {least} and its own"
                yield Content(name, _between(least), only=number, takes="any", ties=True, timed=least > 0)
        return
    if moves:
        yield Content(f"the values of {it} in another order", _in_another_order, only=number, takes="any")
    if structure.mixable:
        return
    if order is not None and counts:
        change = _in_the_same_order(order, structure)
        yield Content(f"other values of {it}, sorted", change, only=number, takes="any", whole=True)
    elif not structure.distinct:
        yield Content(f"other values of {it}", other_values, only=number, takes="any", ties=True)


def repeated(
    structures: Sequence[Structure], tensors: Sequence[torch.Tensor], places: Collection[int]
) -> list[Content]:
    """Contents in which places occur several times, although they do not in draws.

    Args:
        places: numbers of inputs that are only places to read from or to add to. Those that name each place
            of a range are permutations, and stay.
    """
    found = []
    for number, (structure, tensor) in enumerate(zip(structures, tensors, strict=True)):
        if number in places and structure.distinct and structure.order is None:
            low, high = (int(end) for end in torch.aminmax(tensor))
            if high - low >= tensor.numel():
                name = f"repeated values of input {number}"
                found.append(Content(name, other_values, only=number, takes="integers", whole=True))
    return found


def times(factor: int, only: int | None) -> Content:
    """Integers exactly some times as large, if their type has them."""
    return _scaled(factor, only, lambda tensor: tensor * factor)


def larger(factor: float, only: int | None) -> Content:
    """Integers about some times as large, if their type has them. Zeros stay, they may hide something.

    The last bits are random: a float has every multiple of a power of two exactly.
    """

    def change(tensor: torch.Tensor) -> torch.Tensor:
        more = torch.randint(int(factor), tensor.shape).to(tensor.dtype)
        return torch.where(tensor != 0, tensor * int(2 * factor) // 2 + more, tensor)

    return _scaled(factor, only, change)


def either_sign(number: int) -> Content:
    """Integers of which half are negated: C++ divides towards zero, and torch may round down."""

    def change(tensor: torch.Tensor) -> torch.Tensor:
        return torch.where(torch.rand(tensor.shape) < 0.5, -tensor, tensor)

    return Content(f"input {number} with either sign", change, only=number, takes="integers")


def _scaled(factor: float, only: int | None, change: Change) -> Content:
    def if_room(tensor: torch.Tensor) -> torch.Tensor:
        most = torch.iinfo(tensor.dtype).max // int(2 * factor)
        least, greatest = (int(end) for end in torch.aminmax(tensor))
        return change(tensor) if most and -most <= least and greatest <= most else tensor

    name = "integers" if only is None else f"input {only}"
    return Content(f"{name} {factor} times as large", if_room, only=only, takes="integers", whole=True)
