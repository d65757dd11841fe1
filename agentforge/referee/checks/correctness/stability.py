"""Numerical stability, and inputs that vary little."""

from __future__ import annotations

from agentforge.referee.comparison.comparator import accepts
from agentforge.referee.comparison.tolerance import Bound
from agentforge.referee.inputs.coherent import COHERENT, coherent
from agentforge.referee.inputs.discrete import (
    A_FEW,
    BEYOND_32_BITS,
    LARGER,
    discrete,
    either_sign,
    larger,
    repeated,
    times,
)
from agentforge.referee.inputs.edges import at_thresholds, below_the_least, edges
from agentforge.referee.inputs.transforms import OUTLIERS, UNUSUAL, Content
from agentforge.referee.workers.pytree import Leaf

from .._base import FULL_LEVEL, Check, CheckContext, When
from .probes import compare_on

_MANY = 64
"""Least number of different integers of an input of which floats are made: fewer may be all that exist."""


class Stability(Check):
    """Compares outputs for unusual inputs, if the reference is exact for them."""

    name = "stability"
    levels = FULL_LEVEL
    when = When.EXAMINATION
    catches = (
        "wrong values for large, small, zero, equal, shifted, negated and mixed inputs, few large values, "
        "NaN, infinities, either zero, runs, ramps, distances, columns apart, chains, other integers, "
        "places that repeat, masks and orders, "
        "ends of ranges, empty rows and bags, shorter lengths, rows and infinities in common"
    )

    def run(self, context: CheckContext) -> str:
        inputs = context.prepared.inputs
        inputs.fill(0)
        of = inputs.structures, inputs.tensors(0), inputs.order_counts
        found = [*discrete(*of), *edges(*of), *below_the_least(context.prepared.compared, *of[1:])]
        if context.device.kind == "cpu":  # a place that does not exist stops a GPU
            found += at_thresholds(context.prepared.thresholds, *of[1:])
        found += [*coherent(*of[:2]), *repeated(*of[:2], context.prepared.places)]
        if all(form.integer for form in context.prepared.outputs):
            found.append(OUTLIERS)
        tried = [
            c for c in [*UNUSUAL, *COHERENT, *found] if c.defined == "finite" or not context.definition.finite
        ]
        return compare_on([*tried, *_beyond_draws(context)], context)


def _beyond_draws(context: CheckContext) -> list[Content]:
    """Larger and negative integers, for inputs that the reference computes with. Others may be places or
    lengths."""
    prepared = context.prepared
    tensors = prepared.inputs.tensors(0)
    integers = [n for n, t in enumerate(tensors) if times(2, None).concerns(n, t)]
    if context.device.kind != "cpu" or not integers:  # a place that does not exist stops a GPU
        return []
    each: list[int | None] = [None] if len(integers) == 1 else [None, *integers]
    found = [larger(factor, only) for only in each for factor in _factors(context, only)]
    computed = {*prepared.arithmetic, *prepared.chosen}
    return found + [either_sign(n) for n in integers if n in computed and int(tensors[n].min()) >= 0]


def _factors(context: CheckContext, only: int | None) -> list[float]:
    """How many times as large integers may be.

    Any number, if the reference only computes with them; a few, if it also compares what it computed with
    constants, since 32 bits may be enough for those that it is meant for, and if it makes floats of many
    different ones: positions, say, and no masks or ratings. Otherwise each part of its answer
    must be twice as large, or the same, for twice the integers. If none is larger, they may be lengths: 32
    bits are enough.
    """
    prepared, baselines = context.prepared, context.baselines
    tensors = prepared.inputs.tensors(0)
    concerned = {n for n, tensor in enumerate(tensors) if times(2, only).concerns(n, tensor)}
    if concerned <= set(prepared.arithmetic):
        return [LARGER, BEYOND_32_BITS]
    many = {n for n in prepared.as_floats if len(tensors[n].unique()) >= _MANY}
    if concerned <= {*prepared.arithmetic, *prepared.chosen, *many}:
        return [*A_FEW]
    prepared.inputs.fill(0)
    before = baselines.expect(prepared, 0)
    times(2, only).apply(prepared.inputs.tensors(0))
    after = baselines.expect_or_none(prepared, 0)
    if after is None or [x.path for x in before] != [x.path for x in after]:
        return []
    pairs = list(zip(before, after, prepared.bounds, strict=True))
    doubled = [_is_times(2, *pair) for pair in pairs]
    if not all(twice_so or _is_times(1, *pair) for twice_so, pair in zip(doubled, pairs, strict=True)):
        return []
    # An answer that never changes says nothing of integers that never change.
    varied = any(not s.constant and not s.mixable for s in prepared.inputs.structures)
    return [LARGER, BEYOND_32_BITS] if any(doubled) else [LARGER] * varied


def _is_times(factor: int, before: Leaf, after: Leaf, bound: Bound) -> bool:
    if before.value is None or isinstance(before.value, str):
        return factor == 1 and before.value == after.value
    return accepts([after], [Leaf(before.path, before.value * factor)], [bound])
