"""`Plan`, `Critique`, `Attempt`, `Run` and what the loop counts."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Literal

from pydantic import Field

from ._base import FrozenModel, NonEmptyString


class Usage(FrozenModel):
    """What a proposal cost."""

    seconds: float = 0.0
    tokens_in: int = 0
    tokens_out: int = 0
    tokens_cached: int = 0
    dollars: float | None = 0.0
    """None where the price is unknown."""


class Citation(FrozenModel):
    """A measured value that an agent's claim rests on."""

    metric: str
    value: float


class Plan(FrozenModel):
    """The planner's proposal."""

    strategy: NonEmptyString
    """Identifier of the knowledge base's strategy, or a new slug."""
    diagnosis: str = ""
    evidence: tuple[Citation, ...] = ()
    steps: tuple[str, ...] = ()
    language: str = "cpp"
    template: str = ""
    """Kernel template to instantiate, where the strategy names one."""
    parameters: dict[str, int | float | str | bool] = {}
    """Template parameters."""
    expected_speedup: float = Field(default=1.0, gt=0)
    """Over the best baseline, recorded before it is measured."""
    risks: tuple[str, ...] = ()
    author: str = "playbook"
    usage: Usage = Usage()


class RegionPlan(FrozenModel):
    """What the plan for a whole model says of one region."""

    bottleneck: str
    """Hash of its definition."""
    name: str
    fuse: bool
    """True: its operators become kernels of ours. False: they stay as they are."""
    expected_speedup: float = Field(default=1.0, gt=0)
    """Of the region alone, over eager."""
    why: str = ""


class ModelPlan(FrozenModel):
    """Which regions of a model become kernels of ours, in which order, and which stay as they are."""

    regions: tuple[RegionPlan, ...]
    """Each region of the profile once: those to be fused in the order of work, then those that stay."""
    expected_speedup: float = Field(default=1.0, gt=0)
    """Of the whole over eager, by Amdahl from what is expected of the regions."""
    diagnosis: str = ""
    evidence: tuple[Citation, ...] = ()
    author: str = "playbook"
    usage: Usage = Usage()


class Critique(FrozenModel):
    """The judge's answer to an evaluation."""

    kind: Literal["repair", "optimize", "accept", "abandon"]
    """`repair`: the solution failed and can be mended. `optimize`: it passed and can be faster.
    `accept`: nothing left to gain. `abandon`: this line leads nowhere."""
    error_class: str = ""
    """For a repair: `compile`, `crash`, `shape`, `dtype`, `numerical`, `nondeterministic`, `timeout`,
    `out_of_memory`, `slower`."""
    cause: str = ""
    change: str = ""
    """The one fix or change proposed."""
    parameters: dict[str, int | float | str | bool] = {}
    """Template parameters to try next, where the change is one of parameters."""
    evidence: tuple[Citation, ...] = ()
    expected_gain: float = 0.0
    lesson: str = ""
    """What this attempt teaches beyond itself, in a sentence; kept where the evaluation is verified."""
    refutes: tuple[int, ...] = ()
    """Numbers of the run's attempts whose lessons what was measured here contradicts."""
    author: str = "playbook"
    usage: Usage = Usage()


class AttemptStatus(StrEnum):
    """How far an attempt came."""

    PLANNED = "planned"
    CODED = "coded"
    EVALUATED = "evaluated"
    DONE = "done"
    FAILED = "failed"
    """The proposer itself failed: no solution came out."""


class Attempt(FrozenModel):
    """A node of the search tree."""

    id: str
    run: str
    bottleneck: str
    """Hash of the bottleneck's definition."""
    parent: str | None = None
    """Attempt that this one mends or improves; None at a root."""
    number: int
    """1-based, in the order of creation within the run."""
    status: AttemptStatus = AttemptStatus.PLANNED
    plan: Plan | None = None
    solution: str | None = None
    """Hash."""
    evaluation: str | None = None
    """Identifier of the stored evaluation."""
    critique: Critique | None = None
    usage: Usage = Usage()
    error: str = ""
    """Why the proposer failed."""


class Budget(FrozenModel):
    """Limits of a run; None is no limit."""

    minutes: float | None = Field(default=None, gt=0)
    attempts: int | None = Field(default=None, ge=0)
    dollars: float | None = Field(default=None, ge=0)
    tokens: int | None = Field(default=None, gt=0)
    """Of language models, in and out."""


class RunStatus(StrEnum):
    """Where a run stands."""

    CREATED = "created"
    PROFILING = "profiling"
    SEARCHING = "searching"
    STITCHING = "stitching"
    FINISHED = "finished"
    INTERRUPTED = "interrupted"
    FAILED = "failed"


class Run(FrozenModel):
    """One `optimize` of one target."""

    id: str
    """Sortable and short, for example `20261121-0312-llama-7f3a`."""
    target: str
    """Hash of the target's definition."""
    name: str
    """The target's name."""
    origin: str
    device: str
    status: RunStatus
    budget: Budget
    created: datetime
    updated: datetime
    seconds_used: float = 0.0
    """Wall time used up over all sessions of the run."""
    artifact: str | None = None
    """Folder."""
    error: str = ""


class Event(FrozenModel):
    """One line of the append-only event stream that every view reads."""

    seq: int = 0
    """Position in the run's stream, given by the store."""
    run: str
    time: datetime
    kind: NonEmptyString
    """`run.started`, `profile.done`, `attempt.planned`, `attempt.evaluated`, `promotion`, ..."""
    data: dict[str, object] = {}
    """JSON-able."""
