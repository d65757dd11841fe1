"""What a new run begins with. `kinds/` has one file per kind."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from agentforge.config import Settings
from agentforge.devices import DeviceSpec
from agentforge.schema import RunKind, RunRecord, Solution, Target


@dataclass(frozen=True)
class RunInput:
    """What the user gave, loaded."""

    target: Target
    settings: Settings
    """The user's, with what follows from the input: the language of a given kernel."""
    records: tuple[RunRecord, ...] = ()
    """What the run must remember of its input."""
    solutions: tuple[Solution, ...] = ()
    """Given kernels, as the records name them."""


class RunStart(Protocol):
    """The beginning of a run of one kind."""

    @property
    def kind(self) -> RunKind:
        """Decides the run's phases: see `kinds/pipelines.py`."""
        ...

    @property
    def ranged(self) -> bool:
        """Whether the target is a range of shapes."""
        ...

    def check(self, settings: Settings, device: DeviceSpec) -> None:
        """Refuse what cannot work, without loading anything.

        Raises:
            UsageError, MachineError: one sentence that says what to do.
        """
        ...

    def load(self, settings: Settings, device: DeviceSpec) -> RunInput:
        """Load what the user gave; called in a thread of its own, after `check`.

        Raises:
            TargetError, UsageError: it cannot be used.
        """
        ...
