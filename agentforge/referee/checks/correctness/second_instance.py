"""Two models of one solution in one process, as two layers of a network are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from agentforge.referee.comparison.comparator import accepts
from agentforge.referee.workers.client import WorkerClient
from agentforge.referee.workers.failures import WorkerFailure
from agentforge.referee.workers.pytree import Leaf
from agentforge.schema import EvaluationStatus

from .._base import FULL_LEVEL, Check, CheckContext, When
from .trained_weights import CHANGES, changed_weights, copied, load

_MOST_BYTES = 64 << 20
"""Weights above this size stay alone: a second model takes seconds."""
_CHANGE = CHANGES["some weights 64 times as large"]


class SecondInstance(Check):
    """Constructs a second model with other weights in the candidate's process, calls it, and compares what
    the first one answers then.

    The second one's answer is wrong only if it is the first one's: some keep what their constructor made of
    other weights. A solution that cannot be constructed twice fails loudly, which is no wrong answer.
    """

    name = "instances"
    levels = FULL_LEVEL
    when = When.EXAMINATION
    catches = "weights that all models of a process share, such as a packed copy in a static variable"

    def run(self, context: CheckContext) -> str:
        baselines, prepared, candidate = context.baselines, context.prepared, context.candidate
        weights = baselines.weights
        if prepared.state or not weights.trained or weights.block.nbytes > _MOST_BYTES:
            return "the reference has no weights for a second one, too many, or calls that change them"
        prepared.inputs.fill(0)
        expected = baselines.expect(prepared, 0)
        candidate.call(0)  # the first one packs its weights before the second one does
        if not accepts(candidate.fetch(0), expected, prepared.bounds):
            return "the first one keeps other weights than those that it was given last"
        changed = changed_weights(weights, _CHANGE)
        try:
            other = _second(context, candidate, weights.state, changed)
        except WorkerFailure as failure:
            if failure.status is EvaluationStatus.CHEATING or not candidate.worker.running:
                raise
            return "a second one cannot be constructed and called"
        candidate.call(0)
        context.compare(0, expected, "after a second instance of it with other weights was called")
        if accepts(other, expected, prepared.bounds) and _differ(context, expected, changed):
            raise WorkerFailure(
                EvaluationStatus.INCORRECT_NUMERICAL,
                "a second instance of it with other weights answers as the first one does",
            )
        return "right beside a second one with other weights"


def _second(
    context: CheckContext, client: WorkerClient, state: dict[str, Any], changed: dict[str, torch.Tensor]
) -> list[Leaf]:
    """What a second model answers to slot 0: one by another seed, whose weights of `state` change then."""
    weights = context.baselines.weights
    body = {"op": "another", "slot": 0, "seed": weights.seed + 1, "init": weights.init, "state": state}
    with copied(weights, changed) as block:
        return client.leaves(client.request(body, [block.fd]))


def _differ(context: CheckContext, expected: Sequence[Leaf], changed: dict[str, torch.Tensor]) -> bool:
    """Whether the reference's answer is another one both with the weights that the second one got, and by
    another seed."""
    baselines, prepared, eager = context.baselines, context.prepared, context.baselines.eager
    try:
        if accepts(_second(context, eager, {}, changed), expected, prepared.bounds):
            return False
        load(eager, baselines.weights, changed)
        answer = baselines.expect_or_none(prepared, 0)
        return answer is not None and not accepts(answer, expected, prepared.bounds)
    finally:
        if eager.worker.running:
            load(eager, baselines.weights, {})
