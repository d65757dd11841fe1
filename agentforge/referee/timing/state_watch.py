"""Buffers after timed calls: who knows the `state` check may keep them for its calls alone."""

from __future__ import annotations

import time

import torch

from ..baselines.baselines import Baselines
from ..baselines.prepared import PreparedWorkload
from ..baselines.sealed_weights import Placer
from ..comparison.comparator import OutputComparator
from ..comparison.tolerance import derive
from ..workers.client import WorkerClient
from ..workers.memory.shared_memory import Block
from ..workers.pytree import Leaf
from .deferred_work import SLOWEST_READ, Overhead

_MANY_CALLS = 64
"""Times the least allowance, for what rounding adds up to over the calls between two looks."""


class StateWatch:
    """Compares the buffers of candidate and control, which get the same calls between two looks.

    A look only reads from the candidate, after calls that it could not tell from others. The control then
    goes on with what was read. Without buffers to look at it does nothing.
    """

    def __init__(
        self,
        baselines: Baselines,
        candidate: WorkerClient,
        prepared: PreparedWorkload,
        comparator: OutputComparator,
    ) -> None:
        self._control, self._candidate, self._comparator = baselines.control, candidate, comparator
        self._keys = prepared.state
        self.asked = Overhead(
            "reading its buffers takes {}, the reference's {}: work is deferred until somebody asks for them"
        )
        self._policy, self._reduction = baselines.definition.tolerance, prepared.reduction

    def begin(self) -> None:
        """Give the control the candidate's buffers."""
        if self._keys:
            leaves = self._read(self._candidate)
            tensors = (x.value for x in leaves if isinstance(x.value, torch.Tensor))
            self.asked.slack_s = sum(x.nbytes for x in tensors) / SLOWEST_READ
            self._hand_over(leaves)

    def look(self, call_s: float) -> None:
        """Compare what the calls since the last look have left.

        Args:
            call_s: seconds of one of the candidate's calls.

        Raises:
            WorkerFailure: INCORRECT_NUMERICAL.
        """
        if not self._keys:
            return
        answers = []
        for client in (self._candidate, self._control):
            begin = time.perf_counter()
            answers.append(self._read(client))
            self.asked.add(client is self._candidate, [(call_s, time.perf_counter() - begin)])
        got, expected = answers
        for ours, theirs in zip(got, expected, strict=True):
            if isinstance(ours.value, torch.Tensor):  # `state` named the others
                bound = derive(theirs.value, None, self._policy, self._reduction).scaled(_MANY_CALLS)
                self._comparator.check([ours], [theirs], [bound], "after timed calls its buffer")
        self._hand_over(got)

    def _read(self, client: WorkerClient) -> list[Leaf]:
        return client.leaves(client.request({"op": "state", "keys": self._keys}))

    def _hand_over(self, leaves: list[Leaf]) -> None:
        placer = Placer()
        state = {x.path: placer(x.value).to_json() for x in leaves if isinstance(x.value, torch.Tensor)}
        if state:
            block = Block.create("state", placer.nbytes)
            placer.write(block)
            self._control.request({"op": "state", "state": state}, [block.fd])
            block.close()
