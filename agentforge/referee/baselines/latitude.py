"""What else than the reference's answer is right: other ways to compute it, asked for on demand."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import torch

from ..comparison.integers import IntegerLatitude
from ..workers.client import WorkerClient
from ..workers.failures import WorkerFailure
from ..workers.pytree import Leaf
from .prepared import PreparedWorkload

_WAYS = 41
"""Most ways to compute an output again, if an answer differs from it: float64, and moved inputs."""


def with_latitude(
    leaf: Leaf, integer: bool, eager: WorkerClient, prepared: PreparedWorkload, place: tuple[int, int]
) -> Leaf:
    """An output of the reference with its latitude, which holds as long as the slot has these inputs.

    Args:
        place: slot of the inputs, and the output's number.
    """
    if not isinstance(leaf.value, torch.Tensor):
        return leaf
    slot, number = place
    shape = leaf.value.shape

    def recomputed() -> Iterator[torch.Tensor]:
        for way in range(_WAYS):
            found = _asked(eager, {"op": "recomputed", "slot": slot, "way": way, "leaf": number})
            value = found[number].value if found else None
            if isinstance(value, torch.Tensor) and value.shape == shape:
                yield value

    def ordered() -> list[torch.Tensor]:
        hidden = _asked(eager, {"op": "ordered", "slot": slot})
        return [*prepared.inputs.tensors(slot), *(x.value for x in hidden)]

    if integer:
        inputs = ordered if prepared.open_order else None
        return replace(leaf, latitude=IntegerLatitude(recomputed, inputs, tuple(shape), prepared.rounds))
    return replace(leaf, recomputed=recomputed)


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
