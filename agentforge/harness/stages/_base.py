"""The contract of a stage."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from agentforge.config import RefereeSettings
from agentforge.schema import Definition, KernelUse, Level, Metric, Solution

from ..bench import Bench, Course
from ..contents import Unusual
from ..judge import Judge
from ..party import Party


@dataclass
class Context:
    """What the stages of one evaluation share."""

    definition: Definition
    solution: Solution
    settings: RefereeSettings
    level: Level
    bench: Bench
    candidate: Party
    judge: Judge
    course: Course
    """The workload at hand; candidate and bench have it mapped."""
    suspicions: list[str] = field(default_factory=list)
    """Reasons for `suspicious`."""
    notes: list[str] = field(default_factory=list)
    """What a reader must know, and no more than that."""
    unusual: list[Unusual] = field(default_factory=list)
    """Contents that its answers were right for, and that timed calls may ask for too."""
    kernels: list[KernelUse] = field(default_factory=list)
    own_share: float | None = None
    metrics: list[Metric] = field(default_factory=list)


class Stage(Protocol):
    """One kind of examination of a running candidate."""

    name: str
    levels: tuple[Level, ...]
    """Levels that it belongs to."""

    def run(self, context: Context) -> str:
        """Examine the candidate.

        Returns:
            What was found, for a person.

        Raises:
            PartyFailure: the verdict against the candidate.
        """
        ...
