"""Integer and boolean outputs: exact, except if rounding or an order among equals decides.

An element is undecided if the reference in float64, or on inputs moved by a few units in the last place,
gives another value; each value seen is right. Those moves are random, so a few elements that are one step off
are looked at more often. If it computes with integers alone, no element is undecided.
torch promises no order among equals in topk, sort, median and mode: other indices are right if they select
the same values of an input.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch

_WAYS = 9
"""Ways to compute it again that are always tried: float64, and eight moves of the inputs."""
_FEW = 1e-3
"""Share of the elements, each one step off, for which all ways are tried: a tie keeps its side with a chance
of about 0.6 when the inputs move."""
_ONE_STEP_OFF = 1e-5
"""Share of the elements that may be one step off although nothing shows them to be undecided."""


@dataclass(frozen=True)
class IntegerLatitude:
    """Computes, on demand, what else is right for one output of the reference."""

    recomputed: Callable[[], Iterator[torch.Tensor]]
    """The output computed in other ways, one after the other."""
    inputs: Callable[[], Sequence[torch.Tensor]] | None = None
    """The inputs, if the reference leaves the order among equal values open; otherwise None."""
    shape: tuple[int, ...] = ()
    """Of the whole output."""
    rounds: bool = True
    """Whether anything was rounded on the way to it."""

    def settled(self, got: torch.Tensor, expected: torch.Tensor, first: int = 0) -> torch.Tensor:
        """What `got` is compared with.

        Returns:
            `expected`, with the value from `got` at each element that is right too.
        """
        ours, theirs = _flat(got), _flat(expected)
        wrong = (ours != theirs).nonzero().flatten()
        total = wrong.numel()
        if not total:
            return expected
        if self.inputs is not None:
            wrong = wrong[~self._select_the_same(ours, theirs, wrong, first)]
        ways = self.recomputed() if wrong.numel() and self.rounds else iter(())
        few = max(_FEW * ours.numel(), 1.0)
        for way, other in enumerate(ways, start=1):
            wrong = wrong[_flat(other)[first + wrong] != ours[wrong]]
            if not wrong.numel() or (way >= _WAYS and not _near(ours, theirs, wrong, few)):
                break
        valid = self.rounds and (expected.dtype is not torch.bool or bool((ours[wrong] <= 1).all()))
        if valid and _near(ours, theirs, wrong, _ONE_STEP_OFF * ours.numel()):
            return got
        chosen = ours.clone()
        chosen[wrong] = theirs[wrong]
        return chosen.view(expected.dtype).reshape(expected.shape)

    def _select_the_same(
        self, ours: torch.Tensor, theirs: torch.Tensor, wrong: torch.Tensor, first: int
    ) -> torch.Tensor:
        """Which of the wrong elements are indices of equal values in one of the inputs."""
        same = torch.zeros(wrong.numel(), dtype=torch.bool)
        if ours.dtype is not torch.int64 or not self.shape or self.inputs is None:
            return same
        place = torch.unravel_index(first + wrong, self.shape)
        for source in self.inputs():
            for dim in range(source.dim()):
                at = _place_in(source, place, self.shape, dim)
                if at is None or self._repeats(ours, theirs, dim, source.dim()):
                    continue
                a, b = ours[wrong], theirs[wrong]
                inside = (a >= 0) & (a < source.shape[dim]) & (b >= 0) & (b < source.shape[dim])
                if not bool(inside.all()):
                    continue
                x, y = source[(*at[:dim], a, *at[dim:])], source[(*at[:dim], b, *at[dim:])]
                same |= (x == y) | ((x != x) & (y != y))
        return same

    def _repeats(self, ours: torch.Tensor, theirs: torch.Tensor, dim: int, dims: int) -> bool:
        """Whether a whole output has an index twice along a dimension; the reference's has not."""
        if ours.numel() != torch.Size(self.shape).numel() or dims != len(self.shape):
            return False
        ordered = [x.reshape(self.shape).sort(dim).values.diff(dim=dim) for x in (ours, theirs)]
        return bool((ordered[0] == 0).any()) and not bool((ordered[1] == 0).any())


def _near(ours: torch.Tensor, theirs: torch.Tensor, wrong: torch.Tensor, most: float) -> bool:
    """Whether no more than `most` elements are wrong, and all of those by one step."""
    steps = (ours[wrong].long() - theirs[wrong].long()).abs()
    return wrong.numel() <= most and bool((steps <= 1).all())


def _flat(value: torch.Tensor) -> torch.Tensor:
    """One dimension; booleans by their bytes, so that no stored value hides."""
    return (value.view(torch.uint8) if value.dtype is torch.bool else value).reshape(-1)


def _place_in(
    source: torch.Tensor, place: Sequence[torch.Tensor], shape: tuple[int, ...], dim: int
) -> list[torch.Tensor] | None:
    """Coordinates in `source`, without those along `dim`; None if the index cannot select along `dim`."""
    rest = [n for d, n in enumerate(source.shape) if d != dim]
    if len(shape) == source.dim():
        shape, place = shape[:dim] + shape[dim + 1 :], [*place[:dim], *place[dim + 1 :]]
    return list(place) if list(shape) == rest else None
