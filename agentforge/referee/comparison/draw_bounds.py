"""Bounds of a draw that is harder to compute than those that the usual bounds are from.

Equations may be much worse conditioned in one draw than in three others. So an answer outside of the usual
bounds is measured by the reference's error in its own draw, which costs a computation in higher precision.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

from ..baselines.prepared import PreparedWorkload
from ..workers.pytree import Leaf
from .allowance import Allowance
from .tolerance import Bound, halved, scale_of, widest

if TYPE_CHECKING:
    from ..baselines.baselines import Baselines

OwnDraw = Callable[[], tuple[Sequence[Leaf], Sequence[Bound]]]
"""Gives the reference's answer to a call, and bounds by its error in this very draw."""


def own_draw(baselines: Baselines, prepared: PreparedWorkload, slot: int) -> tuple[list[Leaf], list[Bound]]:
    """The `OwnDraw` of a slot's present content."""
    answer, bounds = baselines.expect(prepared, slot), baselines.bounds_for(prepared, slot)
    baselines.stop()
    return answer, bounds


class DrawBounds:
    """Bounds and scales of one draw, at least the usual ones; computed when they are first asked for."""

    def __init__(self, prepared: PreparedWorkload, own: OwnDraw) -> None:
        self._prepared, self._own = prepared, own

    def of(self, output: int) -> Allowance:
        """What an output is allowed."""
        return self._found[output]

    def all(self) -> list[Allowance]:
        """What each whole output is allowed, in units of its own scale."""
        return [replace(x, scale=None) for x in self._found]

    @cached_property
    def _found(self) -> list[Allowance]:
        answer, bounds = self._own()
        found = []
        own_bounds = map(halved, bounds) if self._prepared.strict else bounds
        for n, (leaf, own) in enumerate(zip(answer, own_bounds, strict=True)):
            usual, before = self._prepared.bounds[n], self._prepared.scales[n]
            scale = max(before, scale_of(leaf.value))
            growth = scale / before if before else 1.0  # errors grow with the answer
            bound = widest([replace(usual, absolute=usual.absolute * growth), own])
            found.append(Allowance.of(leaf, bound, scale))
        return found
