"""Buffers after calls, and parameters that calls change."""

from __future__ import annotations

import os
from collections.abc import Sequence

from agentforge.referee.baselines.baselines import Baselines
from agentforge.referee.comparison.tolerance import derive
from agentforge.referee.workers.client import WorkerClient
from agentforge.referee.workers.pytree import Leaf, same_bytes
from agentforge.schema import ReasonCode

from .._base import BOTH_LEVELS, Check, CheckContext, When

_CALLS = 3
_SITUATION = f"after {_CALLS} calls, when its caller has reused the memory of their inputs, its state"


class State(Check):
    """Gives reference and candidate the same buffers, calls both as often, and compares the buffers.

    The candidate's are read after the inputs were overwritten: a buffer may be a view of an input only if the
    reference's is. On a device the candidate computes with copies of the inputs, so that this shows nothing.

    Parameters that the reference's calls change, such as an embedding's with `max_norm`, count as buffers.
    """

    name = "state"
    levels = BOTH_LEVELS
    when = When.EXAMINATION
    catches = "running statistics and counters that are not kept, buffers that are views of inputs"

    def run(self, context: CheckContext) -> str:
        prepared, baselines, keys = context.prepared, context.baselines, context.prepared.state
        if not keys:
            return "the reference keeps no state"
        prepared.inputs.fill(1)
        eager, candidate = baselines.eager, context.candidate
        _call(baselines, eager, keys)
        before = _read(eager, keys)
        prepared.inputs.fill(1)
        views = [not _same(x, y) for x, y in zip(before, _read(eager, keys, given=True), strict=True)]
        _begin(baselines, eager, keys)
        body = {"op": "exact_state", "slot": 1, "keys": keys, "calls": _CALLS}
        exact = eager.leaves(eager.request(body))
        _call(baselines, eager, keys)
        expected, at_once = _read(eager, keys), [Leaf(key, None) for key in keys]
        if any(views):
            _call(baselines, candidate, keys)
            at_once = _read(candidate, keys)
        _call(baselines, candidate, keys)
        prepared.inputs.fill(1)
        later = _read(candidate, keys, given=True)
        got = [x if view else y for x, y, view in zip(at_once, later, views, strict=True)]
        policy, missing = context.definition.tolerance, list[str]()
        for ours, theirs, better in zip(got, expected, exact, strict=True):
            if ours.value is None:
                missing.append(theirs.path)
            else:
                bound = derive(theirs.value, better.value, policy, prepared.reduction)
                context.comparator.check([ours], [theirs], [bound], _SITUATION)
        if missing:
            named = ", ".join(missing[:8])
            reason = f"the reference's calls change {named}, and it has nothing of that name"
            context.findings.suspect(ReasonCode.STATE_MISSING, reason)
            return reason
        return f"the same {', '.join(keys[:8])} after {_CALLS} calls"


def _call(baselines: Baselines, client: WorkerClient, keys: Sequence[str]) -> None:
    """Call a model some times, from the first values of its buffers on."""
    _begin(baselines, client, keys)
    for _ in range(_CALLS):
        client.call(1)


def _read(client: WorkerClient, keys: Sequence[str], *, given: bool = False) -> list[Leaf]:
    """Buffers by key; None if there is no such buffer.

    Args:
        given: give the worker the inputs first, which replace those of its calls.
    """
    body: dict[str, object] = {"op": "state", "keys": list(keys)}
    reply = client.request(body | ({"slot": 1} if given else {}))
    leaves = {x.path: x for x in client.leaves(reply)}
    return [leaves.get(key, Leaf(key, None)) for key in keys]


def _same(one: Leaf, other: Leaf) -> bool:
    return one.value is not None and other.value is not None and same_bytes(one.value, other.value)


def _begin(baselines: Baselines, client: WorkerClient, keys: Sequence[str]) -> None:
    """Give a worker's model the first values of its buffers."""
    weights = baselines.weights
    descriptor = weights.read_only()
    try:
        client.request({"op": "state", "state": {key: weights.state[key] for key in keys}}, [descriptor])
    finally:
        os.close(descriptor)
