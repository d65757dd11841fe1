"""`Plan`, `Critique`, `Attempt`, `Run` and what the loop counts."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Literal

from pydantic import Field

from ._base import FrozenModel, NonEmptyString, RunRecord


class Usage(FrozenModel):
    """What a proposal cost."""

    seconds: float = 0.0
    tokens_in: int = 0
    tokens_out: int = 0
    tokens_cached: int = 0
    dollars: float | None = 0.0
    """None if the price is unknown."""


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
    """Kernel template to instantiate, if the strategy names one."""
    change: str = ""
    """The judge's change to the parent, if the plan is the parent's with that change: also the last step."""
    parameters: dict[str, int | float | str | bool] = {}
    """Template parameters."""
    expected_speedup: float = Field(default=1.0, gt=0)
    """Over the best baseline, recorded before it is measured."""
    risks: tuple[str, ...] = ()
    uses: tuple[int, ...] = ()
    """Numbers of the run's attempts whose lessons it rests on."""
    author: str = "playbook"
    usage: Usage = Usage()


class RegionPlan(FrozenModel):
    """What the plan for a whole model says of one region."""

    bottleneck: str
    """Hash of its definition."""
    name: str
    fuse: bool
    """True: its operators become generated kernels. False: they stay as they are."""
    expected_speedup: float = Field(default=1.0, gt=0)
    """Of the region alone, over eager."""
    why: str = ""


class MoveKind(StrEnum):
    """A rewrite of the whole model that needs no kernel (`stitch/moves/`), in the order of carrying out."""

    FOLD_BATCH_NORM = "fold_batch_norm"
    """Batch norms in inference become part of the weights before them."""
    MERGE_PRODUCTS = "merge_products"
    """Products of one input (Q, K, V; gate and up) become one."""
    CHANNELS_LAST = "channels_last"
    """Convolutions run in channels-last layout, from packed weights."""
    FUSE_EPILOGUES = "fuse_epilogues"
    """Convolutions from packed weights apply the operator after them before they write their results."""
    FOLD_CONSTANTS = "fold_constants"
    """Values that depend on weights and constants alone are computed once."""


class Move(FrozenModel):
    """A move that a plan proposes; stitching carries it out, and keeps it if it pays end to end."""

    kind: MoveKind
    why: str = ""


class ModelPlan(RunRecord):
    """Which regions of a model become generated kernels, in which order, and which stay as they are."""

    record_name = "plan"
    regions: tuple[RegionPlan, ...]
    """Each region of the profile once: those to be fused in the order of work, then those that stay."""
    merges: tuple[str, ...] = ()
    """Possible merges of the profile that become regions, by the hash of their definition."""
    moves: tuple[Move, ...] = ()
    """To be tried on the whole model after the search."""
    expected_speedup: float = Field(default=1.0, gt=0)
    """Of the whole over eager, by Amdahl from the expected speedups of the regions."""
    diagnosis: str = ""
    evidence: tuple[Citation, ...] = ()
    author: str = "playbook"
    usage: Usage = Usage()


class Critique(FrozenModel):
    """The judge's answer to an evaluation."""

    kind: Literal["repair", "optimize", "accept", "abandon"]
    """`repair`: the solution failed and can be repaired. `optimize`: it passed and can be faster.
    `accept`: nothing left to gain. `abandon`: this line leads nowhere."""
    closes: bool = False
    """`accept` of the whole bottleneck: no strategy has anything left to gain there."""
    error_class: str = ""
    """For a repair: `compile`, `crash`, `shape`, `dtype`, `numerical`, `nondeterministic`, `timeout`,
    `out_of_memory`, `slower`."""
    cause: str = ""
    change: str = ""
    """The one fix or change proposed."""
    parameters: dict[str, int | float | str | bool] = {}
    """Template parameters to try next, if the change is one of parameters."""
    evidence: tuple[Citation, ...] = ()
    expected_gain: float = 0.0
    lesson: str = ""
    """What this attempt teaches beyond itself, in a sentence; kept if the evaluation is verified."""
    refutes: tuple[int, ...] = ()
    """Numbers of the run's attempts whose lessons what was measured here contradicts."""
    served: tuple[str, ...] = ()
    """Identifiers of the knowledge base's cards that the judge was shown."""
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


class Trial(FrozenModel):
    """One point of an attempt's parameters that the tuner measured."""

    parameters: dict[str, int | float | str | bool]
    log_speedups: tuple[float, ...] = ()
    """ln(time of `over` / its time) of each quick verdict; empty if it gave no code, failed or was not
    timed."""
    over: str = ""
    """The baseline, `eager`; empty in what older versions wrote, whose trials are over the fastest one."""
    won: bool = False
    """It was faster than all before it, or is the attempt as it was written."""


class Attempt(FrozenModel):
    """A node of the search tree."""

    id: str
    run: str
    bottleneck: str
    """Hash of the bottleneck's definition."""
    parent: str | None = None
    """Attempt that this one repairs or improves; None at a root."""
    target: tuple[int, ...] = ()
    """Cell of machine code that the search policy asked for (`search/cells.py`); empty if for none."""
    coder: str = ""
    """Model that the bandit drew to write it, as the user typed it; empty without a bandit. Without a plan it
    wrote nothing."""
    directive: str = ""
    """Fragment of the coder's prompt that was drawn for it (`Directive.id`); empty if none are used."""
    number: int
    """1-based, in the order of creation within the run."""
    status: AttemptStatus = AttemptStatus.PLANNED
    plan: Plan | None = None
    solution: str | None = None
    """Hash."""
    author: str = ""
    """This and the next one: of the solution as this attempt wrote it, because the store keeps one solution
    for equal code. Empty without one, and in what older versions wrote."""
    parameters: dict[str, int | float | str | bool] = {}
    machine_code: str = ""
    """Hash of what a language model's solution was compiled to; empty if it is not known."""
    evaluation: str | None = None
    """Identifier of the stored evaluation."""
    critique: Critique | None = None
    usage: Usage = Usage()
    error: str = ""
    """Why the proposer failed."""
    served: tuple[str, ...] = ()
    """Identifiers of the knowledge base's cards that its planner and its coder were shown, and the judge
    whose change it carries out."""
    cited: tuple[str, ...] = ()
    """Those of them that its plan names."""
    trials: tuple[Trial, ...] = ()
    """Points that the tuner measured; the solution is the last one that won."""
    remeasured: int = 0
    """Times that it was measured again because the machine was busy."""


class Budget(FrozenModel):
    """Limits of a run; None is no limit."""

    minutes: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """Wall time of the search; profile and stitching come on top."""
    attempts: int | None = Field(default=None, ge=0)
    """Most attempts."""
    dollars: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    """Most that language models may cost."""
    tokens: int | None = Field(default=None, gt=0)
    """Of language models, in and out."""


class RunKind(StrEnum):
    """What a run begins with; it decides which phases the run has."""

    MODEL = "model"
    """A whole model: its bottlenecks are searched, the winners stitched into it."""
    KERNEL = "kernel"
    """A kernel of the user's and the reference that it computes."""
    SEQUENTIAL = "sequential"
    """A sequential C or C++ function."""
    INTENT = "intent"
    """A description in words: a language model writes the reference first."""
    EXTERNAL = "external"
    """A whole model whose attempts come from outside, for example over MCP."""


class RunStatus(StrEnum):
    """How far a run has come."""

    CREATED = "created"
    PROFILING = "profiling"
    SEARCHING = "searching"
    STITCHING = "stitching"
    FINISHED = "finished"
    INTERRUPTED = "interrupted"
    FAILED = "failed"

    @property
    def over(self) -> bool:
        """Whether the run has ended, however it ended."""
        return self in (RunStatus.FINISHED, RunStatus.INTERRUPTED, RunStatus.FAILED)


class Run(FrozenModel):
    """One `optimize` of one target."""

    id: str
    """Sortable and short, for example `20261121-0312-llama-7f3a`."""
    kind: RunKind = RunKind.MODEL
    target: str
    """The target's key in the store."""
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
    stitched_s: float = 0.0
    """Seconds of it in stitching, which counts against no limit of minutes."""
    artifact: str | None = None
    """Folder."""
    error: str = ""
