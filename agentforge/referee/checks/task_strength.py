"""Does the task reject wrong answers?

A task whose output hardly depends on an input accepts constants: a pass proves nothing. Mutants of the
reference are compared with its bounds. If one passes, every candidate is also tried with inputs that expose
it, then with half the tolerance. A mutant that still passes makes verdicts suspicious, unless ignoring that
part is right (a bias before a normalisation). If the user allowed a lower precision, its error may hide a
part of the reference, such as a small bias: the notes name it, and only answers that were made without the
inputs count.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from enum import Enum

import torch

from agentforge.schema import ReasonCode, TargetError

from ..baselines.answers import right_answer
from ..baselines.baselines import Baselines
from ..baselines.prepared import PreparedWorkload, broken_reference
from ..baselines.task_report import TaskReport
from ..comparison.comparator import accepts
from ..comparison.tolerance import Bound, halved
from ..inputs.discrete import discrete
from ..inputs.structure import Structure
from ..inputs.transforms import Answer, Content, exposing_contents
from ..workers.failures import WorkerFailure
from ..workers.pytree import Leaf, same_bytes
from ._base import BOTH_LEVELS, Check, CheckContext, When
from .mutants import Mutant, mutants

_INDEPENDENT = 1e-9
"""Relative change in float64 below which an answer does not depend on what was replaced."""
_LONGER = 8
"""Times `seconds` that the search may take on, if a wrong answer passes."""
_MOST_EXPOSING = 4
"""Contents that a candidate is tried with beside the usual ones, at most."""


class MutantOutcome(Enum):
    """What the comparison makes of a mutant, in the terms of mutation testing."""

    KILLED = "killed"
    SURVIVED = "survived"
    EQUIVALENT = "equivalent"
    """It is the right answer."""


class TaskStrength(Check):
    """Tries mutants of the reference on each workload, once for a definition.

    Afterwards the bounds may be tighter, and `PreparedWorkload.exposing` has inputs that expose more.
    """

    name = "task"
    levels = BOTH_LEVELS
    when = When.BASELINES
    catches = "a task whose bounds accept wrong answers; its verdicts are `suspicious`"

    def run(self, context: CheckContext) -> str:
        report = task_report(context.baselines)
        for weakness in report.weaknesses:
            context.findings.suspect(ReasonCode.WEAK_TASK, weakness)
        if report.notes():
            context.findings.notes["task"] = "; ".join(report.notes())
        return "; ".join(report.describe())


def task_report(baselines: Baselines) -> TaskReport:
    """What the task's bounds accept; examined once for a set of baselines.

    Raises:
        TargetError: the reference does not survive it.
    """
    if baselines.task is not None:
        return baselines.task
    report = TaskReport()
    try:
        for prepared in baselines.prepared:
            baselines.enter_eager(prepared)
            seconds = baselines.settings.task_seconds / len(baselines.prepared)
            report.add(examine_task(baselines, prepared, seconds))
    except WorkerFailure as failure:
        raise TargetError(broken_reference(baselines.definition, failure)) from failure
    finally:
        baselines.disturbed()
    baselines.task = report
    return report


def examine_task(baselines: Baselines, prepared: PreparedWorkload, seconds: float) -> TaskReport:
    """Try mutants; afterwards `prepared.exposing` and `prepared.bounds` reject more of them.

    Args:
        seconds: after this time only mutants that are `always` tried follow; with 0 nothing is tried.

    Raises:
        WorkerFailure: the reference's process died.
    """
    return _Examination(baselines, prepared, seconds).run()


class _Examination:
    def __init__(self, baselines: Baselines, prepared: PreparedWorkload, seconds: float) -> None:
        self._baselines, self._prepared, self._seconds = baselines, prepared, seconds
        self._deadline = time.monotonic() + seconds
        self._report = TaskReport(rough=baselines.definition.precision is not None)
        self._killed: set[str] = set()
        """Names of mutants of which one was rejected: the answer depends on what they ignore."""

    def run(self) -> TaskReport:
        for slot in (0, 1):
            self._prepared.inputs.fill(slot)
        outputs = self._baselines.expect(self._prepared, 0)
        usual = Answer(outputs, self._prepared.bounds)
        survivors: list[tuple[Mutant, MutantOutcome]] = []
        # Half of the time is for trying mutants, the rest for inputs that kill the survivors.
        enough = (time.monotonic() + self._deadline) / 2
        for mutant in mutants(self._baselines, self._prepared):
            if not self._seconds or (time.monotonic() > enough and not mutant.always):
                self._report.untried += 1
                continue
            outcome = self._outcome(mutant, usual)
            self._report.tried += outcome is not None
            if outcome is MutantOutcome.KILLED:
                self._killed.add(mutant.name)
            if outcome in (MutantOutcome.SURVIVED, MutantOutcome.EQUIVALENT):
                survivors.append((mutant, outcome))
        survivors = self._tighten(self._search_inputs(survivors), usual)
        self._report.fixed = [n for n, s in enumerate(self._prepared.inputs.structures) if self._fixed(n, s)]
        self._report.drawn_numbers = self._prepared.drawn_numbers
        passing = {m.name for m, outcome in survivors if outcome is MutantOutcome.SURVIVED}
        names = list(dict.fromkeys(m.name for m, _ in survivors))
        self._report.passing = [n for n in names if n in passing]
        self._report.independent = [n for n in names if n not in passing | self._killed]
        return self._report

    def _search_inputs(
        self, survivors: list[tuple[Mutant, MutantOutcome]]
    ) -> list[tuple[Mutant, MutantOutcome]]:
        """Search for inputs that expose the remaining mutants."""
        contents = exposing_contents(len(self._prepared.inputs.layouts))
        while survivors and contents and len(self._prepared.exposing) < _MOST_EXPOSING:
            content = self._prepared.inputs.fitted(contents.pop(0))
            if time.monotonic() > self._search_deadline(survivors):
                break
            self._prepared.inputs.fill(0)
            content.apply(self._prepared.inputs.tensors(0))
            answer = right_answer(self._baselines, self._prepared, content)
            if answer is None:
                continue
            killed = {id(m) for m, _ in survivors if self._outcome(m, answer) is MutantOutcome.KILLED}
            if killed:
                self._prepared.exposing.append(content)
                survivors = self._without(survivors, killed, content.name)
        self._prepared.inputs.fill(0)
        return survivors

    def _fixed(self, number: int, structure: Structure) -> bool:
        """Whether `get_inputs()` always gives this input alike, and the reference takes no other values."""
        inputs = self._prepared.inputs
        if not structure.constant or not inputs.layouts[number].numel:
            return False
        inputs.fill(0)
        others = discrete(inputs.structures, inputs.tensors(0), inputs.order_counts)
        others += (
            exposing_contents(len(inputs.layouts)) if inputs.tensors(0)[number].is_floating_point() else []
        )
        return not any(self._takes(number, inputs.fitted(c)) for c in others if c.only in (None, number))

    def _takes(self, number: int, content: Content) -> bool:
        """Whether the reference is well defined with another value of an input."""
        inputs = self._prepared.inputs
        inputs.fill(0)
        before = inputs.copies(0)[number]
        content.apply(inputs.tensors(0))
        changed = not same_bytes(before, inputs.tensors(0)[number])
        return changed and right_answer(self._baselines, self._prepared, content) is not None

    def _search_deadline(self, survivors: list[tuple[Mutant, MutantOutcome]]) -> float:
        """Deadline of the search: later if a wrong answer passes, because nothing can be verified then."""
        passes = any(outcome is MutantOutcome.SURVIVED for _, outcome in survivors)
        return self._deadline + (_LONGER * self._seconds if passes else 0.0)

    def _tighten(
        self, survivors: list[tuple[Mutant, MutantOutcome]], usual: Answer
    ) -> list[tuple[Mutant, MutantOutcome]]:
        """Halve the tolerance, if that rejects remaining mutants, as far as honest rounding allows it."""
        passing = [m for m, outcome in survivors if outcome is MutantOutcome.SURVIVED or m.may_be_right]
        if not passing or self._baselines.definition.precision is not None:
            return survivors
        bounds = [halved(bound) for bound in usual.bounds]
        self._prepared.inputs.fill(0)
        answer = Answer(self._baselines.expect(self._prepared, 0), bounds)
        killed = {id(m) for m in passing if self._kills(answer, m)}
        if killed:
            self._prepared.bounds, self._prepared.strict = bounds, True
            survivors = self._without(survivors, killed, "half the tolerance")
        return survivors

    def _without(
        self, survivors: list[tuple[Mutant, MutantOutcome]], killed: set[int], means: str
    ) -> list[tuple[Mutant, MutantOutcome]]:
        names = dict.fromkeys(m.name for m, _ in survivors if id(m) in killed)
        self._killed.update(names)
        self._report.sharpened.setdefault(means, []).extend(names)
        return [(m, outcome) for m, outcome in survivors if id(m) not in killed]

    def _kills(self, answer: Answer, mutant: Mutant) -> bool:
        wrong = self._make(mutant, answer.outputs, exactly=False)
        return wrong is not None and not accepts(wrong, answer.outputs, answer.bounds)

    def _outcome(self, mutant: Mutant, answer: Answer) -> MutantOutcome | None:
        """The comparison's result for a mutant; None if there is nothing to try."""
        wrong = self._make(mutant, answer.outputs, exactly=False)
        if wrong is None:
            return None
        if not accepts(wrong, answer.outputs, answer.bounds):
            return MutantOutcome.KILLED
        if mutant.fixed:
            return MutantOutcome.SURVIVED
        if mutant.as_computed and _same_bits(wrong, answer.outputs):
            return MutantOutcome.EQUIVALENT
        if mutant.may_be_right or self._baselines.definition.precision is not None:
            return MutantOutcome.EQUIVALENT
        del wrong  # answers may be large, and two in float64 follow
        better = self._make(mutant, answer.outputs, exactly=True)
        exact = self._baselines.exact(self._prepared, 0) if better is not None else None
        same = better is not None and exact is not None and _same(better, exact)
        return MutantOutcome.EQUIVALENT if same else MutantOutcome.SURVIVED

    def _make(self, mutant: Mutant, right: Sequence[Leaf], *, exactly: bool) -> list[Leaf] | None:
        try:
            return mutant.make(right, exactly)
        except WorkerFailure:
            # Not defined for such values; a worker that still runs can answer the next question.
            if not self._baselines.eager.worker.running:
                raise
            return None


def _same_bits(ours: Sequence[Leaf], theirs: Sequence[Leaf]) -> bool:
    """Whether two answers are the same to the last bit."""
    return all(
        same_bytes(a.value, b.value) if isinstance(a.value, torch.Tensor) else a.value == b.value
        for a, b in zip(ours, theirs, strict=True)
    )


def _same(ours: Sequence[Leaf], theirs: Sequence[Leaf]) -> bool:
    """Whether two answers differ by rounding alone, in float64."""
    bound = Bound(_INDEPENDENT, _INDEPENDENT, 0.0, 0.0)
    return accepts(ours, theirs, [bound] * len(theirs))
