"""Can the task tell right from wrong?

A task whose output is the same whatever goes in, or is zero, or hardly depends on an input, cannot tell a
kernel from a constant or a copy: nothing that passes there proves anything. (KernelBench's level 2 has such
tasks: a maximum over one element minus its mean.) So mutants of the reference are held against its bounds.
Where one passes, contents are looked for that tell it, and every candidate is tried with those too; then a
tighter tolerance. A mutant that passes all the same is a weakness of the task: its verdicts are suspicious.

Where an answer does not depend on something at all (a bias before a normalisation, an argument that forward
never reads), ignoring it is right, and that is a note.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING

from .contents import Answer, right_answer, sharper
from .judge import accepts
from .leaves import Leaf
from .mutants import Mutant, mutants
from .party import PartyFailure
from .tolerance import Bound

if TYPE_CHECKING:
    from .bench import Bench, Course

_INDEPENDENT = 1e-9
"""Relative change in float64 below which an answer does not depend on what was replaced."""
_NAMED = 8
_PATIENCE = 8
_SHARPEST = 4
"""Contents that a candidate is tried with beside the usual ones, at most."""


class Outcome(Enum):
    """What the comparison makes of a mutant."""

    TOLD = "told"
    PASSES = "passes"
    SAME = "same"
    """It is the right answer."""


@dataclass
class TaskReport:
    """What was found of a task."""

    passing: list[str] = field(default_factory=list)
    """Wrong answers that nothing tells from the right one."""
    independent: list[str] = field(default_factory=list)
    """What the answer does not depend on."""
    sharpened: dict[str, list[str]] = field(default_factory=dict)
    """By the content (or tighter tolerance) that tells them: wrong answers that usual inputs do not tell."""
    tried: int = 0
    untried: int = 0
    """Left out because the time was up."""

    @property
    def weaknesses(self) -> list[str]:
        """Sentences for people, one each."""
        return [
            f"the task cannot tell {what} from the right answer: nothing that passes it is proven"
            for what in self.passing
        ]

    def describe(self) -> list[str]:
        """The whole report, a sentence each."""
        found = [f"{self.tried} wrong answers tried"]
        found += [f"{_listed(names)} told by {how}" for how, names in self.sharpened.items()]
        if self.passing:
            found.append(f"not told: {_listed(self.passing)}")
        return found + self.notes()

    def notes(self) -> list[str]:
        """What a reader must know of a task without weaknesses."""
        found = []
        if self.independent:
            found.append(f"the reference gives the same as {_listed(self.independent)}")
        if self.untried:
            found.append(f"{self.untried} more wrong answers were not tried for lack of time")
        return found

    def add(self, other: TaskReport) -> None:
        """Take in what was found with another workload."""
        self.passing = list(dict.fromkeys([*self.passing, *other.passing]))
        self.independent = list(dict.fromkeys([*self.independent, *other.independent]))
        for how, names in other.sharpened.items():
            self.sharpened[how] = list(dict.fromkeys([*self.sharpened.get(how, []), *names]))
        self.tried += other.tried
        self.untried += other.untried


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more


def examine_task(bench: Bench, course: Course, seconds: float) -> TaskReport:
    """Try the mutants of a reference; `course.sharper` and `course.bounds` are what tells them afterwards.

    Args:
        bench: whose eager worker has the course.
        course: workload made ready.
        seconds: after which no further mutant is tried; what tells a mutant that passes is looked for longer.

    Raises:
        PartyFailure: the reference's process died.
    """
    return _Examination(bench, course, seconds).run()


class _Examination:
    def __init__(self, bench: Bench, course: Course, seconds: float) -> None:
        self._bench, self._course, self._seconds = bench, course, seconds
        self._deadline = time.monotonic() + seconds
        self._report = TaskReport()
        self._told: set[str] = set()
        """Names of mutants one of which is told: the answer depends on what they ignore."""

    def run(self) -> TaskReport:
        for slot in (0, 1):
            self._course.inputs.fill(slot)
        outputs = self._bench.expect(self._course, 0)
        usual = Answer(outputs, self._course.bounds)
        left: list[tuple[Mutant, Outcome]] = []
        # Half of the time for trying, the rest for finding what tells those that passed.
        enough = (time.monotonic() + self._deadline) / 2
        for mutant in mutants(self._bench, self._course):
            if time.monotonic() > enough:
                self._report.untried += 1
                continue
            outcome = self._outcome(mutant, usual)
            self._report.tried += outcome is not None
            if outcome is Outcome.TOLD:
                self._told.add(mutant.name)
            if outcome in (Outcome.PASSES, Outcome.SAME):
                left.append((mutant, outcome))
        left = self._tighten(self._sharpen(left), usual)
        passing = {m.name for m, outcome in left if outcome is Outcome.PASSES}
        names = list(dict.fromkeys(m.name for m, _ in left))
        self._report.passing = [n for n in names if n in passing]
        self._report.independent = [n for n in names if n not in passing | self._told]
        return self._report

    def _sharpen(self, left: list[tuple[Mutant, Outcome]]) -> list[tuple[Mutant, Outcome]]:
        """Look for contents with which the mutants that are left are told."""
        contents = sharper(len(self._course.inputs.layouts))
        while left and contents and len(self._course.sharper) < _SHARPEST:
            content = contents.pop(0)
            if time.monotonic() > self._until(left):
                break
            self._course.inputs.fill(0)
            content.apply(self._course.inputs.tensors(0))
            answer = right_answer(self._bench, self._course, content)
            if answer is None:
                continue
            told = {id(m) for m, _ in left if self._outcome(m, answer) is Outcome.TOLD}
            if told:
                self._course.sharper.append(content)
                left = self._strike(left, told, content.name)
        self._course.inputs.fill(0)
        return left

    def _until(self, left: list[tuple[Mutant, Outcome]]) -> float:
        """Where a wrong answer passes, what tells it is worth more time: nothing can be verified without."""
        passes = any(outcome is Outcome.PASSES for _, outcome in left)
        return self._deadline + (_PATIENCE * self._seconds if passes else 0.0)

    def _tighten(self, left: list[tuple[Mutant, Outcome]], usual: Answer) -> list[tuple[Mutant, Outcome]]:
        """Half the tolerance, where that tells what is left."""
        passing = [m for m, outcome in left if outcome is Outcome.PASSES]
        if not passing or time.monotonic() > self._until(left):
            return left
        bounds = [bound.scaled(0.5) for bound in usual.bounds]
        self._course.inputs.fill(0)
        answer = Answer(self._bench.expect(self._course, 0), bounds)
        told = {id(m) for m in passing if self._told_by(m, answer)}
        if told:
            self._course.bounds = bounds
            left = self._strike(left, told, "half the tolerance")
        return left

    def _strike(
        self, left: list[tuple[Mutant, Outcome]], told: set[int], how: str
    ) -> list[tuple[Mutant, Outcome]]:
        names = dict.fromkeys(m.name for m, _ in left if id(m) in told)
        self._told.update(names)
        self._report.sharpened.setdefault(how, []).extend(names)
        return [(m, outcome) for m, outcome in left if id(m) not in told]

    def _told_by(self, mutant: Mutant, answer: Answer) -> bool:
        wrong = self._make(mutant, answer.outputs, exactly=False)
        return wrong is not None and not accepts(wrong, answer.outputs, answer.bounds)

    def _outcome(self, mutant: Mutant, answer: Answer) -> Outcome | None:
        """What the comparison makes of a mutant; None where there is nothing to try."""
        wrong = self._make(mutant, answer.outputs, exactly=False)
        if wrong is None:
            return None
        if not accepts(wrong, answer.outputs, answer.bounds):
            return Outcome.TOLD
        if mutant.fixed:
            return Outcome.PASSES
        del wrong  # answers may be large, and two in float64 follow
        better = self._make(mutant, answer.outputs, exactly=True)
        exact = self._bench.exact(self._course, 0) if better is not None else None
        same = better is not None and exact is not None and _same(better, exact)
        return Outcome.SAME if same else Outcome.PASSES

    def _make(self, mutant: Mutant, right: Sequence[Leaf], *, exactly: bool) -> list[Leaf] | None:
        try:
            return mutant.make(right, exactly)
        except PartyFailure:
            # Not defined for such values; a worker that lives on will tell its next answer.
            if not self._bench.eager.worker.running:
                raise
            return None


def _same(ours: Sequence[Leaf], theirs: Sequence[Leaf]) -> bool:
    """Whether two answers differ by rounding alone, in float64."""
    bound = Bound(_INDEPENDENT, _INDEPENDENT, 0.0, 0.0)
    return accepts(ours, theirs, [bound] * len(theirs))
