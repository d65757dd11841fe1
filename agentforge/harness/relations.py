"""Metamorphic relations: what an operator's answers to two related inputs have to do with each other.

None is assumed: each is tried on the reference with the workload's own inputs, and where it holds there it
must hold for a candidate's answers too. The comparison with the reference cannot see an error that stays
within the tolerance but depends on where in a batch a row lies; a relation does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch

from .judge import accepts
from .leaves import Leaf
from .tolerance import Bound

_INEXACT = 2.0
"""Slack where the order of a sum or the rounding of an exponential may differ between the two answers."""

Tensors = list[torch.Tensor]


@dataclass(frozen=True)
class Relation:
    """Related inputs, and what the answer to them must be where the relation holds."""

    name: str
    """Reads after "with": `the rows in another order`."""
    change: Callable[[Tensors], Tensors]
    expected: Callable[[torch.Tensor], torch.Tensor]
    """From an output to the output for the changed inputs."""
    slack: float = 1.0
    """So many times the tolerance may the two answers differ."""


def relations(inputs: Sequence[torch.Tensor], outputs: Sequence[Leaf]) -> Iterator[list[Relation]]:
    """Relations that may hold, judged by shapes alone; of each group at most one does.

    Args:
        inputs: of one call.
        outputs: the reference's answer to them.
    """
    first = next((x.value for x in outputs if isinstance(x.value, torch.Tensor)), None)
    if first is None:
        return
    if first.dim() and first.shape[0] > 1:
        yield from _permutations(inputs, first.shape[0], 0, "the rows in another order", 1.0)
    if inputs and inputs[0].dim() > 1 and inputs[0].shape[-1] > 1:
        size = inputs[0].shape[-1]
        yield from _permutations(inputs, size, -1, "the columns in another order", _INEXACT)
    if any(t.is_floating_point() for t in inputs):
        yield [_scaled("inputs twice as large", 2.0, 2.0**degree) for degree in (1, 0, 2)]
        yield [_scaled("negated inputs", -1.0, sign) for sign in (1.0, -1.0)]


def _permutations(
    inputs: Sequence[torch.Tensor], size: int, dim: int, name: str, slack: float
) -> Iterator[list[Relation]]:
    """One order for all inputs that have the size there, or for the first of them alone."""
    having = [n for n, t in enumerate(inputs) if t.dim() and t.shape[dim] == size]
    if not having:
        return
    order = torch.randperm(size)

    def permuted(value: torch.Tensor) -> torch.Tensor:
        fits = value.dim() and value.shape[dim] == size
        return value.index_select(dim if dim >= 0 else value.dim() + dim, order) if fits else value

    found = []
    for chosen in [having] if len(having) == 1 else [having, having[:1]]:

        def change(tensors: Tensors, chosen: Sequence[int] = chosen) -> Tensors:
            return [permuted(t) if n in chosen else t for n, t in enumerate(tensors)]

        found += [Relation(name, change, permuted, slack), Relation(name, change, lambda v: v, slack)]
    yield found


def _scaled(name: str, factor: float, answer: float) -> Relation:
    def change(tensors: Tensors) -> Tensors:
        return [t * factor if t.is_floating_point() else t for t in tensors]

    def expected(value: torch.Tensor) -> torch.Tensor:
        return value if answer == 1.0 else value * answer

    return Relation(name, change, expected, _INEXACT)


def related(relation: Relation, outputs: Sequence[Leaf]) -> list[Leaf]:
    """What the answer to the changed inputs must be."""
    return [
        Leaf(x.path, relation.expected(x.value) if isinstance(x.value, torch.Tensor) else x.value)
        for x in outputs
    ]


def holds(relation: Relation, before: Sequence[Leaf], after: Sequence[Leaf], bounds: Sequence[Bound]) -> bool:
    """Whether a relation holds between two answers of the reference."""
    return accepts(after, related(relation, before), bounds)
