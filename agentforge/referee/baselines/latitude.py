"""What else is right for an integer output, asked of the reference when an answer differs from it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

import torch

from ..comparison.integers import IntegerLatitude
from ..comparison.open_order import OpenOrder
from ..workers.client import WorkerClient
from ..workers.failures import WorkerFailure
from .prepared import PreparedWorkload

_WAYS = 41
"""Most ways to compute an integer output again, if an answer differs from it: float64, and moved inputs."""

_T = TypeVar("_T")


def integer_latitude(
    eager: WorkerClient, prepared: PreparedWorkload, slot: int, number: int, shape: torch.Size
) -> IntegerLatitude:
    """Of the reference's output of a number; it is valid as long as the slot has its inputs."""

    def of_shape(value: object) -> torch.Tensor | None:
        return value if isinstance(value, torch.Tensor) and value.shape == shape else None

    def recomputed() -> Iterator[torch.Tensor]:
        for way in range(_WAYS):
            body = {"op": "recomputed", "slot": slot, "way": way}
            leaves = _tried(eager, lambda body=body: eager.leaves(eager.request(body)))  # type: ignore[misc]
            value = of_shape(leaves[number].value) if leaves is not None else None
            if value is not None:
                yield value

    def answer(tensors: Sequence[torch.Tensor]) -> torch.Tensor | None:
        def ask() -> torch.Tensor | None:
            eager.call(slot)
            return of_shape(eager.fetch(slot)[number].value)

        with prepared.inputs.kept(slot):
            prepared.inputs.give(slot, tensors)
            found = _tried(eager, ask)
        eager.call(slot)  # further questions are about its own inputs again
        return found

    order = OpenOrder(lambda: prepared.inputs.tensors(slot), answer) if prepared.open_order else None
    return IntegerLatitude(recomputed, order, tuple(shape), prepared.rounds)


def _tried(eager: WorkerClient, ask: Callable[[], _T]) -> _T | None:
    """The result of `ask`; None if the reference raises."""
    try:
        return ask()
    except WorkerFailure:
        if not eager.worker.running:
            raise
        return None
