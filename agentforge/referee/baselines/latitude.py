"""What else than the reference's answer is right: other ways to compute it, asked for on demand."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import torch

from ..comparison.integers import IntegerLatitude
from ..comparison.open_order import OpenOrder
from ..workers.client import WorkerClient
from ..workers.failures import WorkerFailure
from ..workers.pytree import Leaf
from .prepared import PreparedWorkload

_WAYS = 41
"""Most ways to compute an output again, if an answer differs from it: float64, moved inputs, and beside them
another order among equals."""


def with_latitude(
    leaf: Leaf, integer: bool, eager: WorkerClient, prepared: PreparedWorkload, place: tuple[int, int]
) -> Leaf:
    """An output of the reference with its latitude, which is valid as long as the slot has these inputs.

    Args:
        place: slot of the inputs, and the output's number.
    """
    if not isinstance(leaf.value, torch.Tensor):
        return leaf
    slot, number = place
    shape = leaf.value.shape

    def output(leaves: list[Leaf]) -> torch.Tensor | None:
        value = leaves[number].value if leaves else None
        return value if isinstance(value, torch.Tensor) and value.shape == shape else None

    def asked(body: dict[str, object]) -> list[Leaf]:
        return _tried(eager, lambda: eager.leaves(eager.request({**body, "slot": slot})))

    def called() -> list[Leaf]:
        eager.call(slot)
        return eager.fetch(slot)

    def recomputed() -> Iterator[torch.Tensor]:
        ways: list[int | str] = [*range(_WAYS)]
        if prepared.open_order and not integer:  # indices of two orders do not go together
            ways.insert(1, "reordered")
        for way in ways:
            value = output(asked({"op": "recomputed", "leaf": number, "way": way}))
            if value is not None:
                yield value

    def ordered() -> list[torch.Tensor]:
        found = (x.value for x in asked({"op": "ordered"}))
        return [x for x in found if isinstance(x, torch.Tensor)]

    def answer(tensors: Sequence[torch.Tensor]) -> torch.Tensor | None:
        with prepared.inputs.kept(slot):
            prepared.inputs.give(slot, tensors)
            found = output(_tried(eager, called))
        eager.call(slot)  # further questions are about its own inputs again
        return found

    def with_next_places(operator: int) -> torch.Tensor | None:
        return output(asked({"op": "recomputed", "next": operator, "leaf": number}))

    if not integer:
        return replace(leaf, recomputed=recomputed)
    order = OpenOrder(lambda: prepared.inputs.tensors(slot), answer, ordered, with_next_places)
    open_order = order if prepared.open_order else None
    return replace(leaf, latitude=IntegerLatitude(recomputed, open_order, tuple(shape), prepared.rounds))


def _tried(eager: WorkerClient, ask: Callable[[], list[Leaf]]) -> list[Leaf]:
    """The worker's answer; nothing if it raised.

    Raises:
        WorkerFailure: its process died.
    """
    try:
        return ask()
    except WorkerFailure:
        if not eager.worker.running:
            raise
        return []
