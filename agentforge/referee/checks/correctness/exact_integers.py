"""Small integers, whose sums are exact."""

from __future__ import annotations

import torch

from agentforge.referee.baselines.answers import right_answer
from agentforge.referee.inputs.transforms import SMALL_INTEGERS, Answer
from agentforge.referee.workers.failures import WorkerFailure
from agentforge.referee.workers.pytree import Leaf
from agentforge.schema import EvaluationStatus

from .._base import FULL_LEVEL, Check, CheckContext, When

_EXACT_BELOW = 1 << 22
"""Sums of small integers below this value are exact in float32, in any order."""


class ExactIntegers(Check):
    """Compares outputs for small integers exactly, if the reference's outputs are exact integers."""

    name = "edges"
    levels = FULL_LEVEL
    when = When.EXAMINATION
    catches = "a term left out of a long sum, which changes an exact integer"
    condition = "unless a lower precision is allowed"

    def applies(self, context: CheckContext) -> bool:
        return super().applies(context) and context.definition.precision is None

    def run(self, context: CheckContext) -> str:
        prepared, candidate = context.prepared, context.candidate
        if not any(t.is_floating_point() for t in prepared.inputs.tensors(0)):
            return "no floating-point inputs"
        prepared.inputs.fill(0)
        prepared.inputs.fitted(SMALL_INTEGERS).apply(prepared.inputs.tensors(0))
        answer = right_answer(context.baselines, prepared, SMALL_INTEGERS)
        if answer is None or not any(_integers(a, b) for a, b in _outputs(answer)):
            return "the reference does not give exact integers for small integers"
        candidate.call(0)
        got = candidate.fetch(0)
        context.comparator.check(got, answer.outputs, answer.bounds, "with small integers")
        for ours, (theirs, equal) in zip(got, _outputs(answer), strict=True):
            if _integers(theirs, equal) and not torch.equal(torch.round(ours.value), theirs.value):
                wrong = int((torch.round(ours.value) != theirs.value).sum())
                raise WorkerFailure(
                    EvaluationStatus.INCORRECT_NUMERICAL,
                    f"with small integers {ours.path} must be exact integers, and {wrong} of its "
                    f"{theirs.value.numel()} elements are not: a term is left out or rounded",
                )
        return "exact for small integers"


def _outputs(answer: Answer) -> list[tuple[Leaf, bool]]:
    return list(zip(answer.outputs, answer.equal, strict=True))


def _integers(ours: Leaf, equal: bool) -> bool:
    """Whether the reference's output consists of exact integers that are not all zero."""
    value = ours.value
    if not isinstance(value, torch.Tensor) or value.dtype not in (torch.float32, torch.float64):
        return False
    return (
        equal
        and bool(value.any())
        and float(value.abs().max()) < _EXACT_BELOW
        and torch.equal(value, torch.round(value))
    )
