"""The backward pass, where the definition asks for one."""

from __future__ import annotations

import math
import secrets

from agentforge.schema import EvaluationStatus, Level

from ..party import PartyFailure
from ..tolerance import Bound, measure
from ._base import Context

_DRAWS = 2
_ANY = Bound(math.inf, 1.0, 0.0, 0.0)
_NOISE = 1e-2
"""Relative error of the reference's gradient against float64 beyond which it is noise."""


class Gradients:
    """Gradients of inputs and parameters against the reference's by autograd, with bounds from its own error
    against float64."""

    name = "gradients"
    levels: tuple[Level, ...] = (Level.QUICK, Level.FULL)

    def run(self, context: Context) -> str:
        if not context.definition.differentiable:
            return "the definition asks for no backward pass"
        paths: list[str] = []
        for _ in range(_DRAWS):
            context.course.inputs.fill(0)
            seed = secrets.randbits(60)
            expected, exact, bounds = context.bench.gradients(context.course, 0, seed)
            reply = context.candidate.request({"op": "gradients", "slot": 0, "seed": seed})
            got = {x.path: x for x in context.candidate.leaves(reply)}
            missing = [x.path for x in expected if x.path not in got]
            if missing:
                raise PartyFailure(
                    EvaluationStatus.INCORRECT_SHAPE,
                    f"its backward pass lacks {', '.join(missing[:6])}, which the reference's has",
                )
            # Where the reference's own gradient is noise (of a bias before a normalisation) none is wrong.
            defined = [
                (x, bound)
                for x, better, bound in zip(expected, exact, bounds, strict=True)
                if measure(x.value, better.value, _ANY).relative < _NOISE
            ]
            paths = [x.path for x, _ in defined]
            context.judge.check(
                [got[path] for path in paths],
                [x for x, _ in defined],
                [b for _, b in defined],
                "in the backward pass",
            )
        return f"right: {', '.join(paths[:12])}"
