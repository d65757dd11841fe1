"""Buffers after calls, and parameters that calls change."""

from __future__ import annotations

import os
from collections.abc import Sequence

from agentforge.referee.baselines.baselines import Baselines
from agentforge.referee.comparison.tolerance import derive
from agentforge.referee.workers.client import WorkerClient
from agentforge.referee.workers.pytree import Leaf
from agentforge.schema import ReasonCode

from .._base import BOTH_LEVELS, Check, CheckContext, When

_CALLS = 3


class State(Check):
    """Gives reference and candidate the same buffers, calls both as often, and compares the buffers.

    Parameters that the reference's calls change, such as an embedding's with `max_norm`, count as buffers.
    """

    name = "state"
    levels = BOTH_LEVELS
    when = When.EXAMINATION
    catches = "running statistics and counters that are not kept"

    def run(self, context: CheckContext) -> str:
        prepared, baselines, keys = context.prepared, context.baselines, context.prepared.state
        if not keys:
            return "the reference keeps no state"
        prepared.inputs.fill(1)
        _begin(baselines, baselines.eager, keys)
        body = {"op": "exact_state", "slot": 1, "keys": keys, "calls": _CALLS}
        exact = baselines.eager.leaves(baselines.eager.request(body))
        expected = _after_calls(baselines, baselines.eager, keys)
        got = {leaf.path: leaf for leaf in _after_calls(baselines, context.candidate, keys)}
        missing = [key for key in keys if key not in got or got[key].value is None]
        policy = context.definition.tolerance
        for ours, better in zip(expected, exact, strict=True):
            if ours.path not in missing:
                bound = derive(ours.value, better.value, policy, prepared.reduction)
                situation = f"after {_CALLS} calls its state"
                context.comparator.check([got[ours.path]], [ours], [bound], situation)
        if missing:
            named = ", ".join(missing[:8])
            reason = f"the reference's calls change {named}, and it has nothing of that name"
            context.findings.suspect(ReasonCode.STATE_MISSING, reason)
            return reason
        return f"the same {', '.join(keys[:8])} after {_CALLS} calls"


def _after_calls(baselines: Baselines, client: WorkerClient, keys: Sequence[str]) -> list[Leaf]:
    """Buffers after some calls from their first values on; None if there is no such buffer."""
    _begin(baselines, client, keys)
    for _ in range(_CALLS):
        client.call(1)
    return client.leaves(client.request({"op": "state", "keys": list(keys)}))


def _begin(baselines: Baselines, client: WorkerClient, keys: Sequence[str]) -> None:
    """Give a worker's model the first values of its buffers."""
    weights = baselines.weights
    descriptor = weights.read_only()
    try:
        client.request({"op": "state", "state": {key: weights.state[key] for key in keys}}, [descriptor])
    finally:
        os.close(descriptor)
