"""The contract of a check, and what the checks of one evaluation share."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Protocol

from agentforge.config import RefereeSettings
from agentforge.devices import DeviceSpec
from agentforge.schema import Definition, EvaluationStatus, Level, Solution

from .._base import EvaluationRequest
from ..baselines.baselines import Baselines
from ..baselines.prepared import PreparedWorkload
from ..candidates.build import CandidateBuilder
from ..candidates.sanitized_builds import SanitizedBuilds
from ..comparison.comparator import OutputComparator
from ..comparison.draw_bounds import DrawBounds
from ..result import Findings
from ..timing.cpu_affinity import CpuAffinity
from ..timing.timer import GroupTimes
from ..timing.unusual_calls import UnusualContents
from ..workers.client import WorkerClient
from ..workers.failures import WorkerFailure
from ..workers.pytree import Leaf

ALL_LEVELS = (Level.SMOKE, Level.QUICK, Level.FULL)
BOTH_LEVELS = (Level.QUICK, Level.FULL)
FULL_LEVEL = (Level.FULL,)


class When(StrEnum):
    """The part of an evaluation in which a check runs, in the order of time."""

    BASELINES = "before the candidate"
    GROUP_START = "before a group"
    EXAMINATION = "each workload"
    BEFORE_TIMING = "before timing"
    AFTER_TIMING = "after timing"
    GROUP_END = "after a group"
    RESULT = "at the end"


@dataclass
class CheckContext:
    """What the checks of one evaluation share."""

    request: EvaluationRequest
    settings: RefereeSettings
    device: DeviceSpec
    builder: CandidateBuilder
    findings: Findings
    """Checks add their results here."""
    comparator: OutputComparator = field(default_factory=OutputComparator)
    sanitized: SanitizedBuilds | None = None
    """None unless the solution has kernels that sanitizers can be built into, and the level is full."""
    unusual: defaultdict[str, UnusualContents] = field(default_factory=lambda: defaultdict(UnusualContents))
    """By the workload's hash: contents for some calls among the timed ones."""
    reference_alone_s: list[float] = field(default_factory=list)
    """Seconds of a reference call for each workload, measured before the candidate started."""
    group_times: list[GroupTimes] = field(default_factory=list)
    """Timings of this process group, one entry for each workload."""
    groups: list[list[GroupTimes]] = field(default_factory=list)
    """Timings of all process groups that the verdict rests on."""
    doubts_now: list[str] = field(default_factory=list)
    """What the checks before timing say of the work that this process group puts off."""
    first_group: bool = True
    """Whether no process group was measured before this one."""

    folder: Path = field(init=False)
    """Of the built solution. Set after the build."""
    baselines: Baselines = field(init=False)
    """Of this process group. Set before When.BASELINES."""
    prepared: PreparedWorkload = field(init=False)
    """The workload that candidate and baselines have. Set before When.EXAMINATION."""
    candidate: WorkerClient = field(init=False)
    placement: CpuAffinity = field(init=False)
    times: GroupTimes = field(init=False)
    """Timings of this workload. Set before When.AFTER_TIMING."""

    def harder(self, slot: int, expected: Sequence[Leaf]) -> DrawBounds:
        """Bounds of a slot's draw; the reference's last call must have been for it."""
        return DrawBounds(self.prepared, lambda: (expected, self.baselines.bounds_for(self.prepared, slot)))

    def compare(self, slot: int, expected: Sequence[Leaf], situation: str) -> list[Leaf]:
        """Compare what the candidate answered last with the reference's last call, both for a slot.

        Returns:
            The candidate's answer.

        Raises:
            WorkerFailure: the answer is wrong.
        """
        harder = self.harder(slot, expected)
        got, bounds = self.candidate.fetch(slot), self.prepared.bounds
        self.comparator.check(got, expected, bounds, situation, harder.all)
        return got

    @property
    def definition(self) -> Definition:
        return self.request.definition

    @property
    def solution(self) -> Solution:
        return self.request.solution

    @property
    def level(self) -> Level:
        return self.request.level


def raised(client: WorkerClient, failure: WorkerFailure) -> bool:
    """Whether a worker's model raised an exception, and its process can answer the next call."""
    return failure.status is EvaluationStatus.RUNTIME_ERROR and client.worker.running


class Check(Protocol):
    """One check of a solution."""

    name: str
    """Name of its stage in `Evaluation.stages`."""
    levels: tuple[Level, ...]
    """Levels at which it runs."""
    when: When
    catches: str
    """One sentence for the documentation: what it finds."""
    condition: str = ""
    """For the documentation: further condition of `applies`."""
    every_group: bool = False
    """For When.EXAMINATION: run in every process group, not only in the first one."""

    def applies(self, context: CheckContext) -> bool:
        """Whether to run it in this evaluation."""
        return context.level in self.levels

    def run(self, context: CheckContext) -> str:
        """Run the check. It adds doubts to `context.findings`.

        Returns:
            What was found, in words for the stage's detail.

        Raises:
            WorkerFailure: the verdict against the candidate.
        """
        ...
