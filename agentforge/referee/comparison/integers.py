"""Integer and boolean outputs: exact, except if rounding or an order among equals decides.

An element is undecided if the reference in float64, or on inputs moved by a few units in the last place,
gives another value; each value seen is right. Those moves are random, so a few elements that are one step off
are looked at more often. If it computes with integers alone, no element is undecided.
torch promises no order among equals in topk, sort, median and mode: see `open_order`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch

from .open_order import OpenOrder

_WAYS = 9
"""Ways to compute it again that are always tried: float64, and eight moves of the inputs."""
_FEW = 1e-3
"""Share of the elements, each one step off, for which all ways are tried: a tie keeps its side with a chance
of about 0.6 when the inputs move."""
_ONE_STEP_OFF = 1e-5
"""Share of the elements that may be one step off although nothing shows them to be undecided, if rounding was
seen to decide as many others."""


@dataclass(frozen=True)
class IntegerLatitude:
    """Computes, on demand, what else is right for one output of the reference."""

    recomputed: Callable[[], Iterator[torch.Tensor]]
    """The output computed in other ways, one after the other."""
    order: OpenOrder | None = None
    """None unless the reference leaves the order among equal values open."""
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
        if not wrong.numel():
            return expected
        if self.order is not None:
            wrong = wrong[~self.order.same(ours, theirs, wrong, first, self.shape)]
        ways = self.recomputed() if wrong.numel() and self.rounds else iter(())
        few, undecided = max(_FEW * ours.numel(), 1.0), torch.zeros_like(ours, dtype=torch.bool)
        for way, other in enumerate(ways, start=1):
            again = _flat(other)[first : first + ours.numel()]
            undecided |= again != theirs
            wrong = wrong[again[wrong] != ours[wrong]]
            if not wrong.numel() or (way >= _WAYS and not _near(ours, theirs, wrong, few)):
                break
        valid = expected.dtype is not torch.bool or bool((ours[wrong] <= 1).all())
        if valid and _near(ours, theirs, wrong, min(_ONE_STEP_OFF * ours.numel(), int(undecided.sum()))):
            return got
        chosen = ours.clone()
        chosen[wrong] = theirs[wrong]
        return chosen.view(expected.dtype).reshape(expected.shape)


def _near(ours: torch.Tensor, theirs: torch.Tensor, wrong: torch.Tensor, most: float) -> bool:
    """Whether no more than `most` elements are wrong, and all of those by one step."""
    steps = (ours[wrong].long() - theirs[wrong].long()).abs()
    return wrong.numel() <= most and bool((steps <= 1).all())


def _flat(value: torch.Tensor) -> torch.Tensor:
    """One dimension; booleans by their bytes, so that no stored value hides."""
    return (value.view(torch.uint8) if value.dtype is torch.bool else value).reshape(-1)
