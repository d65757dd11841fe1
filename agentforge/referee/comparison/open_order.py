"""Indices whose order among equal values torch leaves open: topk, sort, median, mode, cummax and cummin.

An index is right if it selects the same value as the reference's: of what the reference itself orders, or of
the inputs. What the reference orders counts if the places that it finds there reach the output: its answer
changes with them. If they are the output, no other tensor counts where the values differ by more than
rounding.
If several inputs have a value at such a place and they do not agree (scores and a mask), the reference
decides: the values at both places change places in all inputs, and if its index stays, it cannot tell the
places apart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch

_ROUNDING = 64
"""Units in the last place of a row's largest value that values may differ by if they are equal but for
rounding."""

Place = Sequence[torch.Tensor]
"""Coordinates of some elements."""
Rows = tuple[torch.Tensor, Place]
"""A tensor whose last dimension an index selects along, and the coordinates in the others."""


@dataclass(frozen=True)
class OpenOrder:
    """Decides which of the indices that differ from the reference's select the same."""

    inputs: Callable[[], Sequence[torch.Tensor]]
    answer: Callable[[Sequence[torch.Tensor]], torch.Tensor | None] = lambda _: None
    """The reference's indices for other inputs; None if it raises."""
    ordered: Callable[[], Sequence[torch.Tensor]] = lambda: ()
    """What the reference itself gives to the operators that order."""
    with_next_places: Callable[[int], torch.Tensor | None] = lambda _: None
    """The reference's indices if the operator of this number gives the place after each one that it found;
    None if it raises."""

    def same(
        self,
        ours: torch.Tensor,
        theirs: torch.Tensor,
        wrong: torch.Tensor,
        first: int,
        shape: tuple[int, ...],
    ) -> torch.Tensor:
        """Which of the `wrong` elements select the same.

        Args:
            ours: a flat part of an output, as `theirs` of the reference's, from element `first` on.
            shape: of the whole output.
        """
        found = torch.zeros(wrong.numel(), dtype=torch.bool)
        if ours.dtype is not torch.int64 or not shape:
            return found
        place = torch.unravel_index(first + wrong, shape)
        a, b = ours[wrong], theirs[wrong]

        def selected(sources: Sequence[torch.Tensor]) -> Iterator[tuple[int, dict[int, Rows]]]:
            """Each dimension that the indices may select along, and the sources that they fit, by number."""
            for dims, dim in sorted({(s.dim(), d) for s in sources for d in range(s.dim())}):
                rows = {
                    number: (source.movedim(dim, -1), at)
                    for number, source in enumerate(sources)
                    if source.dim() == dims
                    and (at := _place_in(source, place, shape, dim)) is not None
                    and _inside(a, source.shape[dim])
                    and _inside(b, source.shape[dim])
                }
                if rows and not (dims == len(shape) and _repeats(ours, theirs, shape, dim)):
                    yield dim, rows

        decided = torch.zeros_like(found)
        for _, rows in selected(self.ordered()):
            for operator, (row, at) in rows.items():
                values = row[(*at, a)], row[(*at, b)]
                after = self.with_next_places(operator)
                if after is None:
                    found |= _equal(*values)
                    continue
                moved = after.reshape(-1)[first : first + theirs.numel()]
                if not torch.equal(moved, theirs):
                    found |= _equal(*values)
                if bool(found.all()):
                    return found
                decided |= (moved[wrong] == (b + 1) % row.shape[-1]) & ~_nearly(*values, row, at)
        if bool((found | decided).all()):
            return found
        sources = self.inputs()
        for dim, rows in selected(sources):
            equal = torch.stack([_equal(row[(*at, a)], row[(*at, b)]) for row, at in rows.values()])
            alike = equal.any(0)
            if not bool(equal[:, alike].all()):
                moved = {
                    number: _exchanged(row, [x[alike] for x in at], a[alike], b[alike]).movedim(-1, dim)
                    for number, (row, at) in rows.items()
                }
                answer = self.answer([moved.get(n, source) for n, source in enumerate(sources)])
                alike &= equal.all(0) if answer is None else answer.reshape(-1)[first + wrong] == b
            found |= alike & ~decided
        return found


def _exchanged(rows: torch.Tensor, at: Place, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """In each row, the value at `b` lies at `a`; one that lay at `a` and has no place takes one of `b`."""
    ours, theirs = (torch.zeros(rows.shape, dtype=torch.bool) for _ in range(2))
    ours[(*at, a)] = True
    theirs[(*at, b)] = True
    left, free = rows[ours & ~theirs], theirs & ~ours
    moved = rows.clone()
    if len(left) == int(free.sum()):  # as many in each row, unless an index repeats
        moved[free] = left
    moved[(*at, a)] = rows[(*at, b)]
    return moved


def _equal(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return (x == y) | ((x != x) & (y != y))


def _nearly(x: torch.Tensor, y: torch.Tensor, rows: torch.Tensor, at: Place) -> torch.Tensor:
    """Whether values of the rows at some places are equal but for rounding."""
    if not x.is_floating_point():
        return x == y
    largest = rows.double().abs().nan_to_num(0.0, 0.0, 0.0).amax(-1)
    unit = torch.finfo(x.dtype).eps * largest[tuple(at)]
    return _equal(x, y) | ((x.double() - y.double()).abs() <= _ROUNDING * unit)


def _inside(index: torch.Tensor, size: int) -> bool:
    return bool(((index >= 0) & (index < size)).all())


def _repeats(ours: torch.Tensor, theirs: torch.Tensor, shape: tuple[int, ...], dim: int) -> bool:
    """Whether a whole output has an index twice along a dimension; the reference's has not."""
    if ours.numel() != torch.Size(shape).numel():
        return False
    ordered = [x.reshape(shape).sort(dim).values.diff(dim=dim) for x in (ours, theirs)]
    return bool((ordered[0] == 0).any()) and not bool((ordered[1] == 0).any())


def _place_in(source: torch.Tensor, place: Place, shape: tuple[int, ...], dim: int) -> Place | None:
    """Coordinates in `source`, without those along `dim`; None if the index cannot select along `dim`."""
    rest = [n for d, n in enumerate(source.shape) if d != dim]
    if len(shape) == source.dim():
        shape, place = shape[:dim] + shape[dim + 1 :], [*place[:dim], *place[dim + 1 :]]
    return list(place) if list(shape) == rest else None
