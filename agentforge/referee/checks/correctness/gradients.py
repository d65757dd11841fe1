"""The backward pass."""

from __future__ import annotations

import math
import secrets

from agentforge.referee.comparison.tolerance import Bound, derive, measure, root_mean_square
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
    catches = "wrong or missing gradients, if the definition is `differentiable`; noise is skipped"

    def run(self, context: CheckContext) -> str:
        if not context.definition.differentiable:
            return "the definition asks for no backward pass"
        paths: list[str] = []
        for _ in range(_DRAWS):
            context.prepared.inputs.fill(0)
            seed = secrets.randbits(60)
            expected, exact, bounds = _gradients(context, seed)
            reply = context.candidate.request({"op": "gradients", "slot": 0, "seed": seed})
            got = {x.path: x for x in context.candidate.leaves(reply)}
            missing = [x.path for x in expected if x.path not in got]
            if missing:
                raise WorkerFailure(
                    EvaluationStatus.INCORRECT_SHAPE,
                    f"its backward pass lacks {', '.join(missing[:6])}, which the reference's has",
                )
            # The gradient of a bias before a normalisation is noise: no value is wrong.
            sizes = [root_mean_square(x.value) for x in exact]
            least = _VANISHES * max(sizes, default=0.0)
            defined = [
                (x, bound)
                for x, better, bound, size in zip(expected, exact, bounds, sizes, strict=True)
                if size >= least and measure(x.value, better.value, _ANY).relative < _NOISE
            ]
            paths = [x.path for x, _ in defined]
            context.comparator.check(
                [got[path] for path in paths],
                [x for x, _ in defined],
                [b for _, b in defined],
                "in the backward pass",
            )
        return f"right: {', '.join(paths[:12])}"


def _gradients(context: CheckContext, seed: int) -> tuple[list[Leaf], list[Leaf], list[Bound]]:
    """The reference's gradients for slot 0, the same in float64, and bounds from their error.

    Raises:
        TargetError: it has none.
    """
    eager, body = context.baselines.eager, {"slot": 0, "seed": seed}
    try:
        found = eager.leaves(eager.request({"op": "gradients", **body}))
        exact = eager.leaves(eager.request({"op": "exact_gradients", **body}))
    except WorkerFailure as failure:
        raise TargetError(
            f"{context.definition.name} asks for gradients, and its reference has none "
            f"({failure.reason.splitlines()[0][:200]}); fix it, or ask for the forward pass only"
        ) from failure
    how = context.definition.tolerance, context.prepared.reduction
    return found, exact, [derive(a.value, b.value, *how) for a, b in zip(found, exact, strict=True)]
