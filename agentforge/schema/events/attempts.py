"""Events of one attempt."""

from __future__ import annotations

from typing import Literal

from ..evaluation import Evidence, Interval, Level
from ..status import EvaluationStatus
from ._base import Event


class AttemptEvent(Event):
    """Something that happened to one attempt."""

    attempt: str
    """Identifier."""
    number: int
    """1-based, in the order of creation within the run."""
    bottleneck: str
    """Hash of the bottleneck's definition."""


class AttemptPlanning(AttemptEvent):
    """The planner is asked."""

    kind: Literal["attempt.planning"] = "attempt.planning"


class AttemptPlanned(AttemptEvent):
    """The attempt has a plan."""

    kind: Literal["attempt.planned"] = "attempt.planned"
    parent: str | None = None
    """Attempt that it builds on."""
    strategy: str
    language: str = ""
    expected_speedup: float = 1.0
    """Over the best baseline."""
    diagnosis: str = ""
    author: str = ""


class AttemptCoding(AttemptEvent):
    """The coder is asked."""

    kind: Literal["attempt.coding"] = "attempt.coding"


class AttemptCoded(AttemptEvent):
    """The attempt has a solution."""

    kind: Literal["attempt.coded"] = "attempt.coded"
    solution: str = ""
    """Hash."""
    author: str = ""
    language: str = ""
    parameters: dict[str, int | float | str | bool] = {}


class AttemptBuilding(AttemptEvent):
    """The solution is compiled ahead of its evaluation."""

    kind: Literal["attempt.building"] = "attempt.building"


class AttemptEvaluating(AttemptEvent):
    """The referee begins an evaluation."""

    kind: Literal["attempt.evaluating"] = "attempt.evaluating"
    level: Level
    longest_s: float | None = None
    """Seconds from now in which it has to end; None without a limit, and in runs of older versions."""


class _Measured(AttemptEvent):
    level: Level
    status: EvaluationStatus
    evidence: Evidence
    reasons: tuple[str, ...] = ()
    """The first three."""
    seconds: float = 0.0
    """That the evaluation took."""
    latency_s: float | None = None
    """Median seconds per call."""
    speedup: dict[str, Interval] = {}
    """By baseline."""


class AttemptEvaluated(_Measured):
    """The referee has answered."""

    kind: Literal["attempt.evaluated"] = "attempt.evaluated"
    reused: bool = False
    """The run had finished this evaluation before, or another run had made it."""


class AttemptJudging(AttemptEvent):
    """The judge is asked."""

    kind: Literal["attempt.judging"] = "attempt.judging"


class AttemptJudged(AttemptEvent):
    """The judge has answered."""

    kind: Literal["attempt.judged"] = "attempt.judged"
    verdict: str
    """`repair`, `optimize`, `accept`, `abandon`."""
    error_class: str = ""
    cause: str = ""
    change: str = ""


class AttemptReflected(AttemptEvent):
    """The knowledge base has the attempt's result: what was expected and what was measured."""

    kind: Literal["attempt.reflected"] = "attempt.reflected"
    strategy: str
    expected_speedup: float
    """Over the best baseline."""
    measured_speedup: float | None = None
    """Over the best baseline; None if it was not timed."""
    verified: bool = False


class AttemptFailed(AttemptEvent):
    """The attempt has no solution, or none that can be judged."""

    kind: Literal["attempt.failed"] = "attempt.failed"
    error: str


class Promotion(_Measured):
    """The attempt is verified and the fastest of its bottleneck so far."""

    kind: Literal["promotion"] = "promotion"
    solution: str | None = None
    """Hash."""
    time_s: float
    """Seconds of the bottleneck in one forward, with this solution."""
    time_before_s: float
    """Eager seconds of the bottleneck in one forward."""
