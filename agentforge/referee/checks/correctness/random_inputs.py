"""Fresh random inputs."""

from __future__ import annotations

import torch

from agentforge.referee.comparison.rounding import rounds_one_way
from agentforge.referee.workers.failures import WorkerFailure
from agentforge.schema import EvaluationStatus

from .._base import BOTH_LEVELS, Check, CheckContext, When


class RandomInputs(Check):
    """Compares outputs for fresh inputs from several seeds, with bounds from the reference's own error."""

    name = "random"
    levels = BOTH_LEVELS
    when = When.EXAMINATION
    catches = "wrong values on fresh inputs from several seeds; 16-bit answers that are cut off, not rounded"

    def run(self, context: CheckContext) -> str:
        baselines, prepared, candidate = context.baselines, context.prepared, context.candidate
        for number in range(context.settings.random_seeds):
            slot = number % prepared.inputs.slots
            prepared.inputs.fill(slot)
            expected = baselines.expect(prepared, slot)
            candidate.call(slot)
            got = context.compare(slot, expected, "on fresh random inputs")
            for ours, theirs, bound in zip(got, expected, prepared.bounds, strict=True):
                if isinstance(theirs.value, torch.Tensor) and rounds_one_way(ours.value, theirs.value, bound):
                    raise WorkerFailure(
                        EvaluationStatus.INCORRECT_NUMERICAL,
                        f"{theirs.path} is rounded in one direction and not to the nearest number, so that "
                        "errors add up",
                    )
        return f"{context.settings.random_seeds} fresh draws were right"
