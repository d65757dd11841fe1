"""Inputs after a call."""

from __future__ import annotations

import torch

from agentforge.referee.workers.failures import WorkerFailure
from agentforge.referee.workers.pytree import same_bytes
from agentforge.schema import EvaluationStatus

from .._base import BOTH_LEVELS, Check, CheckContext, When


class Mutation(Check):
    """Compares the inputs before and after a call, as the candidate's process sees them."""

    name = "mutation"
    levels = BOTH_LEVELS
    when = When.EXAMINATION
    catches = "writes to inputs that the reference does not write to"

    def run(self, context: CheckContext) -> str:
        prepared, candidate = context.prepared, context.candidate
        prepared.inputs.fill(1)
        candidate.call(1)
        after = candidate.fetch_inputs(1)
        for number, (original, theirs) in enumerate(zip(prepared.inputs.copies(1), after, strict=False)):
            if number in prepared.written:
                continue
            if not isinstance(theirs.value, torch.Tensor) or not same_bytes(original, theirs.value):
                raise WorkerFailure(
                    EvaluationStatus.CHEATING, f"it writes to input {number}, and the reference does not"
                )
        if prepared.written:
            return "what the reference writes to its inputs is compared as a part of its answer"
        return "inputs untouched"
