"""The checks of the referee. `PIPELINE` lists all of them in the order in which they run."""

from __future__ import annotations

from agentforge.languages.cpp.sanitizers.sanitizers import MEMORY, RACES

from ._base import Check, CheckContext, When
from .agreement import Agreement
from .behaviour.aftermath import Aftermath
from .behaviour.ahead_of_time import AheadOfTime
from .behaviour.attestation import Attestation
from .behaviour.determinism import Determinism
from .behaviour.engagement import Engagement
from .behaviour.interference import Interference
from .behaviour.memory_safety import MemorySafety
from .behaviour.mutation import Mutation
from .behaviour.placement import Placement
from .behaviour.soak import Soak
from .behaviour.state import State
from .behaviour.thread_counts import ThreadCounts
from .behaviour.threads import Threads
from .correctness.dtypes import DTypes
from .correctness.exact_integers import ExactIntegers
from .correctness.gradients import Gradients
from .correctness.layouts import Layouts
from .correctness.random_inputs import RandomInputs
from .correctness.second_instance import SecondInstance
from .correctness.sharpened import Sharpened
from .correctness.smoke import Smoke
from .correctness.stability import Stability
from .correctness.trained_weights import TrainedWeights
from .speed_of_light import SpeedOfLight
from .task_strength import TaskStrength

__all__ = ["PIPELINE", "Check", "CheckContext", "When"]

PIPELINE: tuple[Check, ...] = (
    TaskStrength(),
    Interference(When.GROUP_START),
    Smoke(),
    AheadOfTime(),
    RandomInputs(),
    Sharpened(),
    Determinism(),
    Mutation(),
    State(),
    Attestation(),
    Aftermath(When.EXAMINATION),
    DTypes(),
    Gradients(),
    ExactIntegers(),
    TrainedWeights(),
    SecondInstance(),
    Stability(),
    Layouts(),
    Engagement(),
    MemorySafety(MEMORY),
    MemorySafety(RACES),
    ThreadCounts(),
    Placement(),
    Threads(),
    Soak(When.BEFORE_TIMING),
    # Here the candidate is timed.
    Soak(When.AFTER_TIMING),
    Aftermath(When.AFTER_TIMING),
    Interference(When.GROUP_END),
    SpeedOfLight(),
    Agreement(),
)
"""All checks. Within one part of the evaluation (`Check.when`) cheap checks come first."""
