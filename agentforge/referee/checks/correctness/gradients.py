"""The backward pass."""

from __future__ import annotations

import math
import secrets
from collections.abc import Sequence
from typing import Any

from agentforge.referee.comparison.tolerance import (
    Bound,
    all_finite,
    derive,
    measure,
    root_mean_square,
    widest,
)
from agentforge.referee.inputs.transforms import MIXED, Content
from agentforge.referee.workers.failures import WorkerFailure
from agentforge.referee.workers.pytree import Leaf
from agentforge.schema import EvaluationStatus, TargetError

from .._base import BOTH_LEVELS, Check, CheckContext, When

_DRAWS = 2
_ANY = Bound(math.inf, 1.0, 0.0, 0.0)
_NOISE = 1e-2
"""Relative error of the reference's gradient against float64 above which that gradient is noise."""
_VANISHES = 2.0**-22
"""Share of the largest gradient below which a gradient is noise too, even if both are exactly zero by chance:
about the rounding of float32 in what was summed up."""


class Gradients(Check):
    """Compares gradients of inputs and parameters with the reference's autograd, if the definition asks.

    The bounds come from the error of the reference's gradients against float64.
    """

    name = "gradients"
    levels = BOTH_LEVELS
    when = When.EXAMINATION
    catches = (
        "wrong or missing gradients, if the definition is `differentiable`, with usual inputs and mixed "
        "magnitudes, also after another call; noise is skipped; and writes of the backward pass to the "
        "gradient that it gets, to inputs and to outputs"
    )

    def run(self, context: CheckContext) -> str:
        if not context.definition.differentiable:
            return "the definition asks for no backward pass"
        usual: list[Bound] = []
        paths: list[str] = []
        for number in range(_DRAWS):
            paths, usual = _compare(context, another_call=number > 0 and not context.prepared.state)
        unusual, _ = _compare(context, context.prepared.inputs.fitted(MIXED), usual)
        words = f"; with {MIXED.name}: {', '.join(unusual[:12]) or 'not defined by the reference'}"
        return f"right: {', '.join(paths[:12])}{words}"


def _compare(
    context: CheckContext,
    content: Content | None = None,
    usual: Sequence[Bound] = (),
    *,
    another_call: bool = False,
) -> tuple[list[str], list[Bound]]:
    """Compare the gradients of one draw; of a content, where the reference is well defined for it.

    Args:
        usual: bounds of a usual draw; those of a content are at least as wide.
        another_call: the model runs on other inputs before the backward pass.

    Returns:
        Paths of what was compared, and the bounds of all gradients.
    """
    context.prepared.inputs.fill(0)
    if content is not None:
        content.apply(context.prepared.inputs.tensors(0))
    between = 1 if another_call else None
    if another_call:
        context.prepared.inputs.fill(1)
        for client in (context.baselines.eager, context.candidate):
            client.call(1)  # this gives the slot its content
    body = {"op": "gradients", "slot": 0, "seed": secrets.randbits(60), "between": between}
    try:
        expected, exact, bounds, allowed = _gradients(context, body)
    except TargetError:
        if not context.baselines.eager.worker.running or (content is None and not another_call):
            raise
        # A reference may keep in its module what its backward pass needs.
        return _compare(context) if another_call else ([], [])
    if usual:
        bounds = [widest(list(pair)) for pair in zip(bounds, usual, strict=True)]
    # The gradient of a bias before a normalisation is noise: no value is wrong.
    sizes = [root_mean_square(x.value) for x in exact]
    least = _VANISHES * max(sizes, default=0.0)
    defined = [
        (x, bound)
        for x, better, bound, size in zip(expected, exact, bounds, sizes, strict=True)
        if size >= least
        and measure(x.value, better.value, _ANY).relative < _NOISE
        and (content is None or (all_finite(x.value) and all_finite(better.value)))
    ]
    if content is not None and not defined:
        return [], bounds
    reply = context.candidate.request(body)
    _judge_writes(reply.get("written"), allowed)
    got = {x.path: x for x in context.candidate.leaves(reply)}
    missing = [x.path for x in expected if x.path not in got]
    if missing:
        raise WorkerFailure(
            EvaluationStatus.INCORRECT_SHAPE,
            f"its backward pass lacks {', '.join(missing[:6])}, which the reference's has",
        )
    paths = [x.path for x, _ in defined]
    how = f"in the backward pass{' after another call' if another_call else ''}"
    how += "" if content is None else f" with {content.name}"
    context.comparator.check(
        [got[path] for path in paths], [x for x, _ in defined], [b for _, b in defined], how
    )
    return paths, bounds


def _judge_writes(written: object, allowed: Sequence[str]) -> None:
    """A gradient that a backward pass gets also goes to what else depends on its output.

    Args:
        written: what the candidate's backward pass writes to, as its process says.
        allowed: what the reference's does.

    Raises:
        WorkerFailure: it writes to more than the reference's.
    """
    if not isinstance(written, list) or not all(type(path) is str for path in written):
        raise WorkerFailure(EvaluationStatus.CHEATING, "it answered with a false list of what it writes to")
    more = [path[:120] for path in written if path not in allowed]
    if more:
        raise WorkerFailure(
            EvaluationStatus.CHEATING, f"its backward pass writes to {more[0]}, and the reference's does not"
        )


def _gradients(
    context: CheckContext, body: dict[str, Any]
) -> tuple[list[Leaf], list[Leaf], list[Bound], list[str]]:
    """The reference's gradients for slot 0, the same in float64, bounds from their error, and writes.

    Args:
        body: the request for them.

    Raises:
        TargetError: it has none.
    """
    eager = context.baselines.eager
    try:
        reply = eager.request(body)
        found = eager.leaves(reply)
        exact = eager.leaves(eager.request({**body, "op": "exact_gradients"}))
    except WorkerFailure as failure:
        raise TargetError(
            f"{context.definition.name} asks for gradients, and its reference has none "
            f"({failure.reason.splitlines()[0][:200]}); fix it, or ask for the forward pass only"
        ) from failure
    how = context.definition.tolerance, context.prepared.reduction
    bounds = [derive(a.value, b.value, *how) for a, b in zip(found, exact, strict=True)]
    return found, exact, bounds, reply["written"]
