"""Stages that compare outputs: smoke, fresh random inputs, numerical stability."""

from __future__ import annotations

from collections.abc import Sequence

from agentforge.schema import EvaluationStatus, Level

from ..contents import UNUSUAL, Content, Unusual, right_answer
from ..party import PartyFailure
from ._base import Context

_BOTH = (Level.QUICK, Level.FULL)


class Smoke:
    """One call: does it run, and is shape, dtype and value right."""

    name = "smoke"
    levels: tuple[Level, ...] = _BOTH

    def run(self, context: Context) -> str:
        course, candidate = context.course, context.candidate
        course.inputs.fill(0)
        expected = context.bench.expect(course, 0)
        # A first call may compile (torch.compile, Triton).
        patience = candidate.call_timeout_s
        candidate.call_timeout_s += context.settings.build_timeout_s
        candidate.call(0)
        candidate.call_timeout_s = patience
        got = candidate.fetch(0)
        context.judge.check(got, expected, course.bounds, "on the first call")
        if candidate.aliases(0) and not context.bench.eager.aliases(0):
            raise PartyFailure(
                EvaluationStatus.CHEATING,
                "its output shares memory with an input where the reference's does not",
            )
        return "one call was right"


class RandomInputs:
    """Fresh inputs over several seeds, with bounds from the reference's own error on each."""

    name = "random"
    levels: tuple[Level, ...] = _BOTH

    def run(self, context: Context) -> str:
        bench, course, candidate = context.bench, context.course, context.candidate
        for number in range(context.settings.random_seeds):
            slot = number % course.inputs.slots
            course.inputs.fill(slot)
            expected = bench.expect(course, slot)
            candidate.call(slot)
            got = candidate.fetch(slot)
            context.judge.check(got, expected, course.bounds, "on fresh random inputs")
        return f"{context.settings.random_seeds} fresh draws were right"


class Sharpened:
    """Contents which the task check found to tell wrong answers that usual inputs do not."""

    name = "sharpened"
    levels: tuple[Level, ...] = _BOTH

    def run(self, context: Context) -> str:
        contents = context.course.sharper
        if not contents:
            return "usual inputs tell all that was tried"
        return _right_for(contents, context)


class Stability:
    """Large, small, mixed, equal, zero and other unusual inputs, wherever the reference is well defined."""

    name = "stability"
    levels: tuple[Level, ...] = (Level.FULL,)

    def run(self, context: Context) -> str:
        return _right_for(UNUSUAL, context)


def _right_for(contents: Sequence[Content], context: Context) -> str:
    """Hold the candidate's answers to these contents against the reference's.

    Raises:
        PartyFailure: one is wrong.
    """
    course, candidate = context.course, context.candidate
    if not any(t.is_floating_point() for t in course.inputs.tensors(0)):
        return "no floating-point inputs"
    done: list[str] = []
    skipped: list[str] = []
    for content in contents:
        course.inputs.fill(0)
        content.apply(course.inputs.tensors(0))
        answer = right_answer(context.bench, course, content)
        if answer is None:
            skipped.append(content.name)
            continue
        candidate.call(0)
        context.judge.check(candidate.fetch(0), answer.outputs, answer.bounds, f"with {content.name}")
        done.append(content.name)
        unusual = Unusual.of(content, answer, course.bounds)
        if unusual is not None:
            context.unusual.append(unusual)
    text = f"right for: {', '.join(done) or 'none'}"
    return text + (f"; the reference itself is not exact for: {', '.join(skipped)}" if skipped else "")
