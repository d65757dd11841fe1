"""The same operator on inputs with other layouts and sizes, and with other numbers."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import partial
from math import inf

import torch

from agentforge.referee.baselines.prepared import PreparedWorkload, guarded, laid_out
from agentforge.referee.inputs.argument_variants import conjugated, numbers_in, other_lengths, other_numbers
from agentforge.referee.inputs.layouts import (
    SAME_SIZES,
    Change,
    became_one,
    changed,
    changes,
    other_sizes,
    sizes_alone,
)
from agentforge.referee.inputs.structure import is_whole

from .._base import FULL_LEVEL, Check, CheckContext, When
from .variants import VariantComparison

_Variant = tuple[Callable[[], PreparedWorkload], str, str, frozenset[int]]
_SLICES = "inputs that begin anywhere in memory, as slices do"
_CONJUGATES = "complex inputs that are lazy conjugates, as conj() gives them"
_PAGES = "forbidden pages around its inputs"
_COMPILING_S = 60.0
"""Seconds after which a solution that calls torch.compile, and compiles for each variant, begins no more."""


class Layouts(Check):
    """Tries variants that the reference accepts. A candidate may refuse one by raising; it may not be
    wrong."""

    name = "variants"
    levels = FULL_LEVEL
    when = When.EXAMINATION
    catches = (
        "wrong answers and crashes with other strides, in slices, with lazy conjugates, with 0, 1, 7, one "
        "fewer and one more rows, 1, an even and a prime number of columns, a smaller prime and a larger "
        "size of other dimensions, a smaller size of one input alone if the reference reads the sizes of "
        "several, other numbers as arguments, longer and shorter lists, and inputs between inaccessible "
        "pages; raising is allowed, and a solution that calls torch.compile begins none after 60 s"
    )

    def run(self, context: CheckContext) -> str:
        prepared = context.prepared
        prepared.inputs.fill(0)
        until = time.monotonic() + _COMPILING_S if context.builder.compiles else inf
        weights = context.baselines.weights
        given = numbers_in(weights.init)
        tables: set[int] | None = None
        if context.device.kind != "cpu":  # a place that does not exist stops a GPU
            tables = {size for layout in weights.state.values() for size in layout["shape"]}
        skipped = 0
        with VariantComparison(context, may_refuse=True) as comparison:
            for make, name, how, broadcast in _variants(prepared, prepared.inputs.copies(0), given, tables):
                if time.monotonic() < until:
                    comparison.compare(make(), name, f"with {how} (as the reference accepts)", broadcast)
                else:
                    skipped += 1
        left = f"{skipped} not tried, because compiling took long" if skipped else ""
        return "; ".join(filter(None, (comparison.summary(), left)))


def _variants(
    prepared: PreparedWorkload,
    tensors: list[torch.Tensor],
    given: Collection[float] = (),
    tables: Collection[int] | None = None,
) -> Iterator[_Variant]:
    """Variants with their names, in words too, and sizes that became 1: those of the workload's sizes first,
    for which a solution that calls torch.compile compiles soonest.

    Args:
        given: numbers that the constructor was given.
        tables: sizes of the weights, if a place that does not exist ends the reference's process, as on a
            GPU; None if the reference raises.
    """
    looks_up = tables is not None and bool(tables or any(map(is_whole, tensors)))
    yield from _changed(prepared, tensors, SAME_SIZES)
    yield partial(laid_out, prepared, tensors, shifted=True), "slices", _SLICES, frozenset()
    yield partial(guarded, prepared, tensors), "forbidden pages", _PAGES, frozenset()
    lazy = conjugated(prepared.inputs.arguments.encoded, tensors)
    if lazy is not None:
        yield partial(laid_out, prepared, lazy[1], lazy[0]), "lazy conjugates", _CONJUGATES, frozenset()
    for name, encoded in other_numbers(prepared.inputs.arguments.encoded, integers=not looks_up):
        yield partial(laid_out, prepared, tensors, encoded), name, name, frozenset()
    for name, encoded, content in other_lengths(prepared.inputs.arguments.encoded, tensors):
        yield partial(laid_out, prepared, content, encoded), name, name, frozenset()
    others = {name: change for name, change in changes(tensors, tables).items() if name not in SAME_SIZES}
    yield from _changed(prepared, tensors, others)
    numbers = {*given, *numbers_in(prepared.inputs.arguments.encoded)}
    yield from _changed(prepared, tensors, other_sizes(tensors, numbers, larger_too=not tables))
    for name, content in sizes_alone(tensors, numbers, prepared.measured):
        yield partial(laid_out, prepared, content), name, name, frozenset()


def _changed(
    prepared: PreparedWorkload, tensors: list[torch.Tensor], wanted: Mapping[str, Change]
) -> Iterator[_Variant]:
    """The variants of these changes, one after the other: all contents at once may be large."""
    for name, change in wanted.items():
        content = changed(tensors, change)
        if content is not None:
            yield partial(laid_out, prepared, content), name, name, became_one(tensors, content)
