"""Stages that ask for properties of the operator: exact integers, metamorphic relations, other types."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from agentforge.schema import EvaluationStatus, Level

from ..bench import Course
from ..contents import SMALL_INTEGERS, Answer, Content, right_answer
from ..leaves import Leaf
from ..memory import DTYPES
from ..party import PartyFailure
from ..relations import Relation, holds, related, relations
from ..variants import laid_out
from ._base import Context

_FULL = (Level.FULL,)
_EXACT_BELOW = 1 << 22
"""Sums of small integers are exact in float32 below, in whatever order."""


class Edges:
    """Small integers, where the reference's answer to them is an exact integer too: a term that is left out
    of a long sum is within every relative tolerance, and changes an integer."""

    name = "edges"
    levels: tuple[Level, ...] = _FULL

    def run(self, context: Context) -> str:
        course, candidate = context.course, context.candidate
        if not any(t.is_floating_point() for t in course.inputs.tensors(0)):
            return "no floating-point inputs"
        course.inputs.fill(0)
        SMALL_INTEGERS.apply(course.inputs.tensors(0))
        answer = right_answer(context.bench, course, SMALL_INTEGERS)
        if answer is None or not any(_integers(a, b) for a, b in _outputs(answer)):
            return "the reference does not give exact integers for small integers"
        candidate.call(0)
        got = candidate.fetch(0)
        context.judge.check(got, answer.outputs, answer.bounds, "with small integers")
        for ours, (theirs, equal) in zip(got, _outputs(answer), strict=True):
            if _integers(theirs, equal) and not torch.equal(torch.round(ours.value), theirs.value):
                wrong = int((torch.round(ours.value) != theirs.value).sum())
                raise PartyFailure(
                    EvaluationStatus.INCORRECT_NUMERICAL,
                    f"with small integers {ours.path} must be exact integers, and {wrong} of its "
                    f"{theirs.value.numel()} elements are others: something is left out or rounded",
                )
        return "exact for small integers"


def _outputs(answer: Answer) -> list[tuple[Leaf, bool]]:
    return list(zip(answer.outputs, answer.equal, strict=True))


def _integers(ours: Leaf, equal: bool) -> bool:
    """Whether the reference's output is integers, exactly, and not all of them zero."""
    value = ours.value
    if not isinstance(value, torch.Tensor) or value.dtype not in (torch.float32, torch.float64):
        return False
    return (
        equal
        and bool(value.any())
        and float(value.abs().max()) < _EXACT_BELOW
        and torch.equal(value, torch.round(value))
    )


class Relations:
    """Metamorphic relations that hold for the reference: permutations, scaling, a batch in two parts."""

    name = "relations"
    levels: tuple[Level, ...] = _FULL

    def run(self, context: Context) -> str:
        course, candidate = context.course, context.candidate
        course.inputs.fill(0)
        inputs = course.inputs.copies(0)
        before = context.bench.expect(course, 0)
        candidate.call(0)
        mine = candidate.fetch(0)
        context.judge.check(mine, before, course.bounds, "on fresh random inputs")
        found = []
        for group in relations(inputs, before):
            for relation in group:
                if self._try(context, relation, inputs, before, mine):
                    found.append(relation.name)
                    break
        split = self._split(context, inputs, before, mine) if "the rows in another order" in found else ""
        held = [f"holds with {name}" for name in found] + [split]
        return "; ".join(h for h in held if h) or "the reference has none of those that are tried"

    def _try(
        self,
        context: Context,
        relation: Relation,
        inputs: list[torch.Tensor],
        before: Sequence[Leaf],
        mine: Sequence[Leaf],
    ) -> bool:
        """Whether the relation holds for the reference; then it does for the candidate."""
        course, candidate = context.course, context.candidate
        content = Content(relation.name, lambda t: t)
        course.inputs.give(0, relation.change(inputs))
        answer = right_answer(context.bench, course, content)
        if answer is None or not holds(relation, before, answer.outputs, course.bounds):
            return False
        candidate.call(0)
        got = candidate.fetch(0)
        context.judge.check(got, answer.outputs, answer.bounds, f"with {relation.name}")
        bounds = [b.scaled(relation.slack) for b in answer.bounds]
        del answer  # outputs may be large
        agreeing = f"beside its own answer to the same inputs, with {relation.name}"
        context.judge.check(got, related(relation, mine), bounds, agreeing)
        return True

    def _split(
        self,
        context: Context,
        inputs: list[torch.Tensor],
        before: Sequence[Leaf],
        mine: Sequence[Leaf],
    ) -> str:
        """The first part of a batch alone; a candidate may refuse its shape."""
        rows = before[0].value.shape[0]
        part = int(torch.randint(1, rows, ()))
        content = [
            t[:part].contiguous() if t.dim() and t.shape[0] == rows else t for t in inputs
        ]  # fmt: skip
        variant = laid_out(context.course, content)
        try:
            return self._compare_part(context, variant, part, before, mine)
        finally:
            variant.inputs.close()
            context.bench.disturbed()
            context.bench.enter(context.course)
            body, inputs_of = context.course.body(), context.course.inputs
            context.candidate.configure(body, inputs_of, context.course.outputs_bytes)

    def _compare_part(
        self,
        context: Context,
        variant: Course,
        part: int,
        before: Sequence[Leaf],
        mine: Sequence[Leaf],
    ) -> str:
        bench, candidate, bounds = context.bench, context.candidate, context.course.bounds
        first = Relation("", lambda tensors: tensors, lambda value: value[:part])
        try:
            bench.eager.configure(variant.body(), variant.inputs, variant.outputs_bytes)
            if not holds(first, before, bench.expect(variant, 0), bounds):
                return ""
        except PartyFailure:
            if not bench.eager.worker.running:
                raise
            return ""
        candidate.configure(variant.body(), variant.inputs, variant.outputs_bytes)
        try:
            candidate.call(0)
        except PartyFailure as failure:
            if failure.status is EvaluationStatus.RUNTIME_ERROR and candidate.worker.running:
                return "a part of the batch alone is refused"
            raise
        part_of = "beside its own answer to the whole batch, with the first part alone,"
        context.judge.check(candidate.fetch(0), related(first, mine), bounds, part_of)
        return "holds with a part of the batch alone"


class Types:
    """Inputs of other floating-point types, where the definition asks for them."""

    name = "types"
    levels: tuple[Level, ...] = (Level.QUICK, Level.FULL)

    def run(self, context: Context) -> str:
        asked = context.definition.dtypes
        if not asked:
            return "the definition asks for no other types"
        context.course.inputs.fill(0)
        inputs = context.course.inputs.copies(0)
        outcome: dict[str, list[str]] = {}
        try:
            for dtype in asked:
                content = [t.to(DTYPES[dtype.value]) if t.is_floating_point() else t for t in inputs]
                outcome.setdefault(self._try(context, content, dtype.value), []).append(dtype.value)
        finally:
            context.bench.disturbed()
            context.bench.enter(context.course)
            course = context.course
            context.candidate.configure(course.body(), course.inputs, course.outputs_bytes)
        return "; ".join(f"{result}: {', '.join(names)}" for result, names in outcome.items())

    def _try(self, context: Context, content: Sequence[torch.Tensor], name: str) -> str:
        variant = laid_out(context.course, content)
        bench, candidate = context.bench, context.candidate
        try:
            try:
                bench.eager.configure(variant.body(), variant.inputs, variant.outputs_bytes)
                expected = bench.expect(variant, 0)
                bounds = bench.bounds_for(variant, 0)
            except PartyFailure:
                if not bench.eager.worker.running:
                    raise
                return "not defined by the reference"
            candidate.configure(variant.body(), variant.inputs, variant.outputs_bytes)
            candidate.call(0)
            context.judge.check(candidate.fetch(0), expected, bounds, f"with {name} inputs")
            return "right"
        finally:
            variant.inputs.close()
