"""The reference's error on inputs and weights that differ in their last bits.

Its error in one answer alone may be none by chance. The mean of equal values can be exact, and another right
kernel's is not; a batch norm then divides the difference by a tiny deviation. A sum that cancels may hit the
exact value. Over many elements chance evens out.

A long sum that cancels has a further measure: how far the exact answer moves with the last bits of the
inputs. The reference sums pairwise. A loop with a few accumulators is right too, and errs more than that by
up to the root of the sum's length.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

from agentforge.schema import Definition, TolerancePolicy

from ..comparison.exactness import Exactness
from ..comparison.tolerance import LARGEST_BOUND, Bound, widest
from ..workers.client import WorkerClient
from ..workers.failures import WorkerFailure
from .prepared import PreparedWorkload

_DRAWS = 4
"""Times that the error is taken."""
_OF_ONE = 16
"""Elements of an output below which 4 draws leave to chance how far it moves, and the draws that do not."""
_UNITS_ALIKE, _UNITS = 16.0, 4096.0
"""Twice the units in the last place that inputs and weights move by, at most. Inputs that are alike must stay
so. Other inputs move so far that the sum of a row, which moves less, is rounded in another way."""
_FEW = 1000
"""Elements of an output above which chance evens out."""
_SERIAL = 0.5
"""Error of a sum with few accumulators: of what the last bits of its terms change, times the root of its
length."""
_ILL_CONDITIONED = 1e-2
"""Relative error of the reference against float64 above which its answer is chance."""


class Reference(Protocol):
    """Asks the reference: a part of `Baselines`."""

    eager: WorkerClient
    definition: Definition

    def held_against(
        self, prepared: PreparedWorkload, slot: int, against: str, units: float = 0.0
    ) -> list[Exactness]: ...


class NotDefined(Exception):
    """The reference's answer is chance."""


def exact_enough(found: Exactness) -> bool:
    """Whether the reference's answer is no chance."""
    return found.agrees and found.bound.reference_error <= _ILL_CONDITIONED


def bounds_nearby(
    reference: Reference, prepared: PreparedWorkload, slot: int, bounds: Sequence[Bound], *, every: bool
) -> list[Bound]:
    """The bounds of the reference's last answer, or wider ones by its error nearby.

    Args:
        every: also for outputs of many elements, because the inputs are alike.

    Raises:
        NotDefined: that error is as large as the answer.
    """
    chosen = [every or 0 < form.numel < _FEW for form in prepared.outputs]
    wider = list(bounds)
    for _ in range(_DRAWS if any(chosen) else 0):
        try:
            found = reference.held_against(prepared, slot, "nearby", _UNITS_ALIKE if every else _UNITS)
        except WorkerFailure:
            if not reference.eager.worker.running:
                raise
            return list(bounds)
        for n in (n for n, wanted in enumerate(chosen) if wanted):
            if not exact_enough(found[n]):
                raise NotDefined
            bound = _of_few(found[n].bound, prepared.outputs[n].numel, reference.definition.tolerance)
            wider[n] = widest([wider[n], bound])
    return _with_long_sums(reference, prepared, slot, wider)


def _with_long_sums(
    reference: Reference, prepared: PreparedWorkload, slot: int, bounds: Sequence[Bound]
) -> list[Bound]:
    """The bounds, or wider ones for outputs of few elements that are sums with few accumulators.

    Not for 16-bit types, whose sums are accumulated in float32.
    """
    chosen = [0 < form.numel < _FEW and form.nbytes >= 4 * form.numel for form in prepared.outputs]
    if not any(chosen):
        return list(bounds)
    fewest = min(form.numel for form, wanted in zip(prepared.outputs, chosen, strict=True) if wanted)
    draws = {"draws": _DRAWS if fewest >= _OF_ONE else _OF_ONE, "least": _DRAWS}
    try:
        moved = reference.eager.request({"op": "spread", "slot": slot, **draws})["spread"]
    except WorkerFailure:
        if not reference.eager.worker.running:
            raise
        return list(bounds)
    wider = list(bounds)
    for n in (n for n, wanted in enumerate(chosen) if wanted and bounds[n].relative):
        error = min(_SERIAL * math.sqrt(prepared.reduction) * moved[n], LARGEST_BOUND)
        bound = wider[n]
        wider[n] = replace(bound, relative=max(bound.relative, error), element=max(bound.element, error))
    return wider


def _of_few(bound: Bound, elements: int, policy: TolerancePolicy) -> Bound:
    """A bound with room for chance: one element errs up to three times the root mean square of many."""
    if not elements or policy.factor * bound.reference_error < bound.relative:  # or it is the floor
        return bound
    room = 1 + 2 / math.sqrt(elements)
    return replace(bound, relative=bound.relative * room, absolute=bound.absolute * room)
