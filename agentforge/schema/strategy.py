"""`Strategy`: a technique with what happened when it was tried, by context."""

from __future__ import annotations

from datetime import UTC, datetime
from enum import StrEnum
from functools import cached_property
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from ._base import FrozenModel, NonEmptyString, content_hash
from .evaluation import Evidence
from .feedback import Bound
from .solution import Solution
from .status import EvaluationStatus


def _in_utc(time: datetime) -> datetime:
    """The time in UTC; one without a zone is in UTC already."""
    try:
        return (time if time.tzinfo else time.replace(tzinfo=UTC)).astimezone(UTC)
    except OverflowError as error:
        raise ValueError("in UTC it is before the year 1 or after the year 9999") from error


Moment = Annotated[datetime, AfterValidator(_in_utc)]
Count = Annotated[int, Field(ge=0, le=1_000_000_000)]


class Context(FrozenModel):
    """Where a strategy was tried; records are kept for each distinct context."""

    op_type: NonEmptyString
    shape_class: str = ""
    """By bytes against the caches and rows against threads: e.g. `dram/many-rows`, `l2/few-rows`."""
    dtype: str = "float32"
    architecture: str = ""
    toolchain: str = ""
    """Compiler and its major version: `g++-12`, `triton-3`, `nvrtc-13`."""
    bound: Bound | Literal[""] = ""
    """Bottleneck class; empty if it is not known."""
    operators: tuple[tuple[str, Count], ...] = ()
    """How many operators of each kind the graph has: `reduction`, `pointwise`; empty if not known."""
    intensity: int | None = Field(default=None, ge=-4096, le=4096)
    """log2 of floating-point operations per byte, rounded; None if not known."""

    @cached_property
    def hash(self) -> str:
        unknown = {name for name in ("operators", "intensity") if getattr(self, name) in ((), None)}
        return content_hash(self.model_dump(mode="json", exclude=unknown))

    def same_operators(self, other: Context) -> bool:
        """Whether the other one is this one, perhaps in another shape: same operators, dtype and device."""
        parts = ("op_type", "operators", "dtype", "architecture")
        return self == other or (
            bool(self.operators) and all(getattr(self, part) == getattr(other, part) for part in parts)
        )


class Outcome(FrozenModel):
    """What one evaluation said about one strategy in one context; never changed once written."""

    id: NonEmptyString
    """Derived from strategy and evaluation, so that recording or importing it again changes nothing."""
    strategy: NonEmptyString
    """Identifier of the strategy."""
    context: Context
    solution: NonEmptyString
    """Hash."""
    evaluation: NonEmptyString
    """Identifier of the stored evaluation."""
    run: str | None = None
    status: EvaluationStatus
    evidence: Evidence
    log_speedup: float | None = Field(default=None, allow_inf_nan=False)
    """ln(best baseline time / solution time) as measured; None unless passed and timed."""
    after: str = ""
    """Strategy of the nearest attempt above this one that passed with another strategy; empty if there is
    none, as for a first attempt and for what repairs or tunes it."""
    log_gain: float | None = Field(default=None, allow_inf_nan=False)
    """ln(its time / solution's time), both against eager; None without `after`, and if one of them was judged
    alone and the other one inside the model."""
    symptoms: tuple[str, ...] = ()
    """Names of the metrics that decided the class of what it was built on."""
    generator: str = ""
    """Hash of the code generator and its templates, if they wrote the solution."""
    parameters: dict[str, int | float | str | bool] = {}
    time: Moment
    claimed: bool = False
    """True for an outcome from another database, not judged here. It never counts as verified."""
    origin: str = ""
    """Files and databases that a claim came through, the nearest first; run and evaluation are those of the
    last one."""

    @property
    def credit(self) -> float | None:
        """What the strategy itself gained: `log_gain` if it was built on another one, else `log_speedup`."""
        return self.log_gain if self.after else self.log_speedup


class Precedent(FrozenModel):
    """A solution that an earlier run wrote and that was verified here."""

    solution: Solution
    strategy: str
    """Identifier of the strategy."""
    log_speedup: float
    """ln(best baseline time / solution time), of its newest verified evaluation."""


class Lesson(FrozenModel):
    """What was learned from one verified evaluation, in words; never changed once written."""

    id: NonEmptyString
    """Derived from strategy, evaluation and text, so that recording it again changes nothing."""
    strategy: NonEmptyString
    context: Context
    evaluation: NonEmptyString
    """Identifier of the verified evaluation that it rests on."""
    text: str = Field(min_length=1, max_length=600)
    """One lesson that is valid beyond this attempt, for later plans."""
    expected_speedup: float | None = Field(default=None, gt=0)
    """Of the plan, over the best baseline; None if nothing was expected."""
    speedup: float = Field(gt=0)
    """Measured, over the best baseline."""
    author: str
    run: str | None = None
    time: Moment
    claimed: bool = False
    """True for a lesson from another database. Language models never see it."""
    origin: str = ""
    """As in `Outcome`."""


class StrategyRecord(FrozenModel):
    """What happened in one context: n verified results with mean and variance of log speedup, failures."""

    context: Context
    n: int = Field(default=0, ge=0)
    """Verified evaluations (faster or slower)."""
    mean_log_speedup: float = 0.0
    """Mean of ln(best baseline time / solution time)."""
    var_log_speedup: float = 0.0
    """Sample variance; 0 below two results."""
    mean_credit: float | None = None
    """Mean of `Outcome.credit`, which leaves out what a follow-up was built on; None without a result."""
    failures: int = Field(default=0, ge=0)
    """Evaluations that did not pass, cheating included."""
    unproven: int = Field(default=0, ge=0)
    """Solutions that passed and were never verified: neither a win nor a failure."""
    discouraging: int = Field(default=0, ge=0)
    """Of the unproven ones, those that looked no faster than the best baseline, or suspicious."""
    best_solution: str | None = None
    """Hash of the fastest verified solution."""
    best_log_speedup: float | None = None
    best_parameters: dict[str, int | float | str | bool] = {}
    claims: int = Field(default=0, ge=0)
    """Outcomes of other databases that passed there with a measured speedup; in none of the other counts."""
    mean_claimed_log_speedup: float = 0.0
    """Mean of their log speedups, each limited to plus or minus ln 1.5."""
    measured: int = Field(default=0, ge=0)
    """Unproven solutions with a time that is not suspicious."""
    mean_measured_log_speedup: float = 0.0
    """Mean of their log speedups, each as it was measured last."""
    newest: datetime | None = None
    """Time of the newest outcome."""


class Strategy(FrozenModel):
    """A technique, as a playbook card describes it."""

    id: NonEmptyString
    """Slug: `fuse-row-program`."""
    title: str
    summary: str
    """One paragraph: when it helps and why."""
    op_types: tuple[str, ...] = ()
    """Operator classes it applies to; empty for all."""
    languages: tuple[str, ...] = ("cpp",)
    devices: tuple[str, ...] = ("cpu",)
    bounds: tuple[Bound, ...] = ()
    """Bottleneck classes it addresses; empty for all."""
    template: str = ""
    """Template under knowledge_base/templates, if the playbook can instantiate it."""
    parameters: dict[str, tuple[int | float | str | bool, ...]] = {}
    """Tuning space: parameter to the values worth trying, best guess first."""
    expected: dict[str, tuple[float, ...]] = {}
    """Of each of these values, the gain over the first one that experience lets expect in a context, in log
    speedup; empty if there is no experience."""
    prior_log_speedup: float = Field(default=0.0, ge=-20, le=20)
    """Expected ln speedup over the best baseline before anything was seen here."""
    prior_weight: float = Field(default=1.0, ge=0, le=1_000_000)
    """Pseudo-observations behind the prior."""
    source: str = ""
    """What the card rests on: an address, a paper with its year, or a file in benchmarks/results."""
    body: str = ""
    """The card's text."""
    claimed: bool = False
    """True for one from another database: it is listed, and neither ranked nor shown to language models."""
    records: tuple[StrategyRecord, ...] = ()
    lessons: tuple[Lesson, ...] = ()
    """What verified evaluations taught, newest first."""


class CardKind(StrEnum):
    """What a card of the playbook is."""

    TECHNIQUE = "technique"
    """How to make operators faster: a `Strategy`."""
    AVOID = "avoid"
    """What does not pay, and when."""
    SYMPTOM = "symptom"
    """What a measured sign means, and what to try."""
    HARDWARE = "hardware"
    """Widths, sizes, latencies and limits of an architecture."""


Signal = Annotated[str, Field(pattern=r"^[A-Za-z_][\w.]*( (>=|<) -?\d+(\.\d+)?(e-?\d+)?)?$")]
"""A `ReasonCode`, a metric that decided the classification, or a metric's range: `spilled_bytes >= 1`."""


class Advice(FrozenModel):
    """A card that is no technique. Each tuple says to what it applies; an empty one excludes nothing."""

    id: NonEmptyString
    kind: Literal[CardKind.AVOID, CardKind.SYMPTOM, CardKind.HARDWARE]
    title: NonEmptyString
    summary: NonEmptyString
    """What agents read: at most 60 words."""
    source: NonEmptyString
    """As in `Strategy`."""
    op_types: tuple[str, ...] = ()
    bounds: tuple[Bound, ...] = ()
    languages: tuple[str, ...] = ()
    devices: tuple[str, ...] = ()
    architectures: tuple[str, ...] = ()
    """Words of an architecture's name: `sm_90`, `x86-64`, `avx512`."""
    signals: tuple[Signal, ...] = ()
    """One of them must be in the last evaluation."""
    body: str = ""
    """The card's text, for people."""
