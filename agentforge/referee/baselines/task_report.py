"""Result of the task check: which wrong answers a task's error bounds accept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

_NAMED = 8
"""Names listed in one sentence."""


@dataclass
class TaskReport:
    """What was found of a task."""

    passing: list[str] = field(default_factory=list)
    """Wrong answers that no input and no bound rejects."""
    fixed: list[int] = field(default_factory=list)
    """Numbers of inputs that never change, and for which the reference takes no other values."""
    drawn_numbers: bool = False
    """`get_inputs()` draws Python numbers, which are the same in every call."""
    independent: list[str] = field(default_factory=list)
    """What the answer does not depend on."""
    sharpened: dict[str, list[str]] = field(default_factory=dict)
    """Content (or tighter tolerance) to the wrong answers that it rejects and usual inputs accept."""
    tried: int = 0
    untried: int = 0
    """Left out because the time was up."""
    rough: bool = False
    """The user allowed a lower precision, so that small differences count as rounding."""

    @property
    def weaknesses(self) -> list[str]:
        """Sentences for people, one each."""
        return [
            f"the task cannot tell {what} from the right answer: nothing that passes it is proven"
            for what in self.passing
        ] + [
            *(f"input {number} never changes: a solution that ignores it passes" for number in self.fixed),
            *[
                "get_inputs() draws Python numbers, and every timed call has the same: "
                "a solution may keep what it computes from them; give them as tensors"
            ]
            * self.drawn_numbers,
        ]

    def describe(self) -> list[str]:
        """The whole report, a sentence each."""
        found = [f"{self.tried} wrong answers tried"]
        found += [f"{_listed(names)} rejected by {how}" for how, names in self.sharpened.items()]
        found += [f"input {number} never changes" for number in self.fixed]
        found += ["get_inputs() draws Python numbers"] * self.drawn_numbers
        if self.passing:
            found.append(f"not rejected: {_listed(self.passing)}")
        return found + self.notes()

    def notes(self) -> list[str]:
        """What a reader must know of a task without weaknesses."""
        found = []
        if self.independent:
            same = "in the allowed precision, " if self.rough else ""
            found.append(f"{same}the reference gives the same as {_listed(self.independent)}")
        if self.untried:
            found.append(f"{self.untried} more wrong answers were not tried for lack of time")
        return found

    def add(self, other: TaskReport) -> None:
        """Take in what was found with another workload."""
        self.passing = list(dict.fromkeys([*self.passing, *other.passing]))
        self.fixed = list(dict.fromkeys([*self.fixed, *other.fixed]))
        self.independent = list(dict.fromkeys([*self.independent, *other.independent]))
        self.drawn_numbers = self.drawn_numbers or other.drawn_numbers
        for how, names in other.sharpened.items():
            self.sharpened[how] = list(dict.fromkeys([*self.sharpened.get(how, []), *names]))
        self.tried += other.tried
        self.untried += other.untried
        self.rough = self.rough or other.rough


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more
