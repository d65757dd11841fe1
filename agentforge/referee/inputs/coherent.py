"""Contents whose values go together: runs, ramps and distances. `get_inputs()` mostly draws each value alone.

A kernel that looks only a few steps back, or makes too few rounds, is right for values that were drawn alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch

from .structure import Structure, is_coarse, is_whole, two_values
from .transforms import Content

_RUN = 64
"""Values of a run, at most."""
_NOISE = 1 / 64
"""Share of its own value that an element of a run keeps, so that no two are equal."""
_FARTHEST = 1024.0
"""Largest squared distance."""
_LEAST_POINTS = 16
_APART = 4.0
"""How many times their own spread the means of columns differ by."""
_NEARLY_ONE = 1 - 1 / 64


def in_runs(tensor: torch.Tensor) -> torch.Tensor:
    """Values that hardly change for a while along each of the last two dimensions."""
    if _exact_square(tensor):
        return tensor
    held = tensor
    for dim in range(max(0, tensor.dim() - 2), tensor.dim()):
        length = min(_RUN, tensor.shape[dim] // 4)
        if length > 1:
            held = held.index_select(dim, torch.arange(tensor.shape[dim]) // length * length)
    kept = held is tensor or (not tensor.is_complex() and two_values(tensor))
    return held if kept else held * (1 - _NOISE) + tensor * _NOISE


def _exact_square(tensor: torch.Tensor) -> bool:
    """Whether it has square matrices in double precision. With these contents they are nearly singular, and
    nothing more exact tells what a solution of equations may err then."""
    return tensor.dtype is torch.float64 and tensor.dim() > 1 and tensor.shape[-1] == tensor.shape[-2]


def rising(tensor: torch.Tensor) -> torch.Tensor:
    """Values that rise along the longer one of the last two dimensions."""
    if tensor.is_complex() or not tensor.dim():
        return tensor
    longer = -2 if tensor.dim() > 1 and tensor.shape[-2] > tensor.shape[-1] else -1
    return tensor.sort(longer).values


def squared_distances(tensor: torch.Tensor) -> torch.Tensor:
    """The squared distances of points on a line, where the last two dimensions may be pairs: the shortest way
    between far points leads over all between them, and sums are dominated by few terms."""
    pairs = tensor.dim() > 1 and min(tensor.shape[-2:]) >= _LEAST_POINTS
    if not pairs or tensor.is_complex() or _exact_square(tensor):
        return tensor
    rows, columns = tensor.shape[-2:]
    one = torch.rand(*tensor.shape[:-2], rows, 1, dtype=torch.float64)
    other = one.mT if rows == columns else torch.rand(*tensor.shape[:-2], 1, columns, dtype=torch.float64)
    return ((one - other) ** 2 * _FARTHEST).to(tensor.dtype) + tensor * _NOISE  # alone they are singular


def columns_apart(tensor: torch.Tensor) -> torch.Tensor:
    """Values whose mean is another one in each column, so that most rows have their largest ones at the same
    places: a router that sends most tokens to few experts."""
    if tensor.dim() < 2 or tensor.is_complex() or two_values(tensor) or _exact_square(tensor):
        return tensor
    spread = _APART * float(tensor.float().std())  # NaN for one element
    apart = spread * torch.randn(tensor.shape[-1])
    return tensor + apart.to(tensor.dtype) if bool(apart.isfinite().all()) else tensor


def both_zeros(tensor: torch.Tensor) -> torch.Tensor:
    """Zeros of either sign."""
    return torch.where(torch.rand(tensor.shape) < 0.5, 0.0, -0.0).to(tensor.dtype)


COHERENT = (
    Content("runs of nearly equal values", in_runs, ties=True, whole=True),
    Content("rising values", rising, whole=True),
    Content("squared distances", squared_distances, ties=True, whole=True),
    Content("columns of other means", columns_apart, whole=True),
    Content("shifted by -30", lambda t: t - 30),
    Content("shifted by -120", lambda t: t - 120),
    Content("zeros of either sign", both_zeros, ties=True),
)
"""Tried with floating-point inputs, all at once."""


def coherent(structures: Sequence[Structure], tensors: Sequence[torch.Tensor]) -> Iterator[Content]:
    """Contents of single inputs: runs in masks, unit ranges that are used up, and lists in which each element
    points to the one before it."""
    for number, (structure, tensor) in enumerate(zip(structures, tensors, strict=True)):
        if not tensor.numel() or tensor.is_complex() or is_coarse(tensor) or structure.single:
            continue
        free = structure.order is None and not structure.distinct
        if structure.mixable:
            yield from _to_one(number, tensor)
        elif free and two_values(tensor):
            yield Content(
                f"runs of values in input {number}", in_runs, only=number, takes="any", ties=True, whole=True
            )
        if free and is_whole(tensor):
            yield from _pointers(number, tensor)


def _to_one(number: int, tensor: torch.Tensor) -> Iterator[Content]:
    """Probabilities, eccentricities and the like, of which a draw has small ones."""
    low, high = (float(end) for end in torch.aminmax(tensor))
    if low >= 0 and 0 < high < _NEARLY_ONE:
        name = f"values of input {number} up to 1"
        yield Content(name, lambda t: t * (_NEARLY_ONE / high), only=number)


def _pointers(number: int, tensor: torch.Tensor) -> Iterator[Content]:
    low, high = (int(end) for end in torch.aminmax(tensor))
    if tensor.dim() != 1 or not len(tensor) // 2 <= high < len(tensor):
        return

    def change(integers: torch.Tensor) -> torch.Tensor:
        return (torch.arange(len(integers)) - 1).clamp(low, high).to(integers.dtype)

    name = f"each element of input {number} pointing to the one before it"
    yield Content(name, change, only=number, takes="integers", ties=True, whole=True, timed=False)
