"""What else than the reference's answer is right: other ways to compute it, asked for on demand."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import torch

from ..comparison.integers import IntegerLatitude
from ..comparison.open_order import OpenOrder
from ..workers.client import WorkerClient
from ..workers.failures import WorkerFailure
from ..workers.pytree import Leaf
from .prepared import PreparedWorkload

_WAYS = 41
"""Most ways to compute an output again, if an answer differs from it: float64, and moved inputs."""


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

    def recomputed() -> Iterator[torch.Tensor]:
        for way in range(_WAYS):
            value = output(_asked(eager, {"op": "recomputed", "slot": slot, "way": way, "leaf": number}))
            if value is not None:
                yield value

    def ordered() -> list[torch.Tensor]:
        found = (x.value for x in _asked(eager, {"op": "ordered", "slot": slot}))
        return [x for x in found if isinstance(x, torch.Tensor)]

    def answer(tensors: Sequence[torch.Tensor]) -> torch.Tensor | None:
        with prepared.inputs.kept(slot):
            prepared.inputs.give(slot, tensors)
            try:
                eager.call(slot)
                found = output(eager.fetch(slot))
            except WorkerFailure:
                if not eager.worker.running:
                    raise
                found = None
        eager.call(slot)  # further questions are about its own inputs again
        return found

    if not integer:
        return replace(leaf, recomputed=recomputed)
    order = OpenOrder(lambda: prepared.inputs.tensors(slot), answer, ordered) if prepared.open_order else None
    return replace(leaf, latitude=IntegerLatitude(recomputed, order, tuple(shape), prepared.rounds))


def _asked(eager: WorkerClient, body: dict[str, object]) -> list[Leaf]:
    """The worker's answer; nothing if it raised.

    Raises:
        WorkerFailure: its process died.
    """
    try:
        return eager.leaves(eager.request(body))
    except WorkerFailure:
        if not eager.worker.running:
            raise
        return []
