"""`Evaluation`: the referee's verdict on one solution over its workloads."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from math import floor, isfinite
from statistics import median
from typing import Literal, Self

from pydantic import Field, model_validator

from ._base import FrozenModel
from .feedback import Classification, Finding, ResourceUsage
from .status import EvaluationStatus, ReasonCode

OUTSIDE = "outside of stages"
"""Name of the seconds of an evaluation that belong to no stage."""

JUDGED = "judged"
"""Key of the environment's note in a verdict on a kernel that was judged inside its model."""

REUSED = "reused"
"""Key of the environment's note in a copy of an earlier run's evaluation."""

COPY_OF = "copy_of"
"""Key of the note in such a copy with the earlier evaluation's identifier, if it judged the same source."""

_WIDE = 1.25
"""Ratio of an interval's ends above which a gain is reported as `at least`."""


class Evidence(StrEnum):
    """How far the numbers can be trusted."""

    VERIFIED = "verified"
    """The numbers can be trusted, also if they say "slower"."""
    SUSPICIOUS = "suspicious"
    """A reason speaks against it: the task cannot tell right from wrong, own kernels never ran or did
    nothing, operators that the policy forbids, processes left running, a missing buffer."""
    UNVERIFIED = "unverified"
    """Level `quick`, an interval that decides nothing, or overheads that may be deferred work or noise."""


class Level(StrEnum):
    """How much the referee does: `smoke` for a first look (one call on the smallest input, no timing),
    `quick` for search (one process, short timing, never `verified`), `full` for promotion (every stage, at
    least three fresh processes)."""

    SMOKE = "smoke"
    QUICK = "quick"
    FULL = "full"


class Interval(FrozenModel):
    """A point estimate with its 95% interval. Fewer than six blocks cover less, and a reason then says so."""

    point: float
    low: float
    high: float

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.low > self.high:
            raise ValueError("interval's low is above its high")
        return self

    @property
    def at_least(self) -> float | None:
        """The low end rounded down to hundredths, if it is above 1 then and the interval so wide that the
        point says less."""
        low = floor(100 * self.low) / 100 if isfinite(self.low) else self.low
        return low if low > 1 and self.high > _WIDE * self.low else None

    def __str__(self) -> str:
        """As a ratio: `1.52x [1.48, 1.57]`."""
        return f"{self.point:.2f}x [{self.low:.2f}, {self.high:.2f}]"


_NO_COMPILER = ("eager", "control", "cuda-graph")


def baseline_name(baseline: str) -> str:
    """A baseline as people know it: `torch.compile` for `compile`, `torch.compile (freezing)`."""
    if baseline == "compile":
        return "torch.compile"
    return baseline if baseline in (*_NO_COMPILER, "artifact") else f"torch.compile ({baseline})"


class Diagnostic(FrozenModel):
    """One message of a compiler, an interpreter or a sanitizer."""

    severity: Literal["error", "warning", "note"] = "error"
    message: str
    file: str = ""
    line: int = 0
    """1-based; 0 if unknown."""
    column: int = 0


class StageResult(FrozenModel):
    """One stage of the referee."""

    name: str
    """`build`, `smoke`, `random`, `determinism`, `timing`, ..."""
    status: EvaluationStatus
    seconds: float = 0.0
    """Wall time of the stage."""
    detail: str = ""
    """What was found, for a person."""


class Correctness(FrozenModel):
    """The worst output over all checked calls."""

    max_absolute_error: float
    max_relative_error: float
    """Relative L2 norm of the error of the worst output."""
    tolerance: float
    """Relative L2 bound that applied there."""
    reference_error: float
    """Relative L2 error of the reference in its dtype against float64."""
    checked_calls: int
    """Calls whose outputs were compared, timed ones included."""
    worst: str = ""
    """Where and how far: output, index, got, expected."""
    mismatch: tuple[str, ...] = ()
    """Of the output that is wrong: how many elements, in which rows and columns, and some of the values."""


class Performance(FrozenModel):
    """Latencies by the supervisor's clock, and speedups as paired ratios."""

    latency_s: float = Field(ge=0)
    """Median seconds a call of the solution."""
    baseline_s: dict[str, float]
    """Median seconds a call, by baseline: `eager`, `compile`, `freezing`, ..."""
    speedup: dict[str, Interval]
    """Baseline time / solution time, by baseline."""
    control: Interval
    """A/A': the same baseline in two processes; 1.0 inside the noise."""
    deviation: float = 1.0
    """Largest factor by which the control differed from 1 in a process group; the ends of the speedups'
    intervals were moved outwards by it."""
    workload_s: dict[str, dict[str, float]] = {}
    """Median seconds a call by name of the workload: of the solution (`candidate`) and of each baseline.
    Empty if there is one workload. The other times are means over the workloads: by their weights, or
    geometric (`Workload.key`)."""
    workload_speedup: dict[str, dict[str, Interval]] = {}
    """Speedups by name of the workload, then by baseline; empty if there is one workload. If the means are
    geometric, `speedup` is the geometric mean of these."""
    processor_ratio: dict[str, float] = {}
    """Processor time of a call of each baseline / of the solution; empty if it was not measured. It says
    nothing about speed if they use different numbers of threads."""
    blocks: int
    """Interleaved blocks that the intervals rest on."""
    processes: int
    """Fresh process groups that the intervals rest on."""
    minimum_effect: float = 0.0
    """Smallest speedup beyond 1 that this measurement could have detected, e.g. 0.02."""
    sol_s: float | None = None
    """Speed-of-light seconds for the least bytes and operations on this device, if known."""

    @property
    def best_baseline(self) -> str:
        """Name of the fastest baseline."""
        return min(self.baseline_s, key=lambda k: self.baseline_s[k])

    @property
    def speedup_over_best(self) -> Interval:
        """Speedup against the fastest baseline."""
        return self.speedup[self.best_baseline]


class KernelUse(FrozenModel):
    """A kernel or torch operator that the candidate ran, as seen by attestation."""

    name: str
    own: bool
    """True for the candidate's own kernel."""
    calls: int
    share: float = 0.0
    """Share of the call's time, 0 to 1, if measured."""


class Metric(FrozenModel):
    """One hardware or compiler metric: `dram__bytes.sum`, `achieved_bandwidth_gbs`, `vectorised_loops`."""

    name: str
    value: float
    unit: str = ""
    source: str = ""
    """`ncu`, `profiler`, `roofline`, `compiler`, `referee`."""
    kernel: str = ""
    """The kernel that it is of; empty for the whole solution."""


def merged_metrics(before: Iterable[Metric], new: Iterable[Metric]) -> tuple[Metric, ...]:
    """Both, a new one in the place of an older one of the same name and kernel."""
    kept = {(m.name, m.kernel): m for m in before}
    kept.update({(m.name, m.kernel): m for m in new})
    return tuple(kept.values())


class Environment(FrozenModel):
    """What it was measured on."""

    device: str
    """`AMD EPYC 9B14 (4 threads)`, `NVIDIA H100 80GB HBM3`."""
    architecture: str
    """`x86-64 avx512`, `sm_90`."""
    toolchain: dict[str, str]
    """Versions: torch, python, g++, ..."""
    sandbox: str = ""
    """Which sandbox held the candidate."""
    notes: dict[str, str] = {}
    """Steal, clocks, threads."""


class Evaluation(FrozenModel):
    """The referee's verdict. Failures are data, not exceptions."""

    definition: str
    """Hash of the definition."""
    solution: str
    """Hash of the solution."""
    workloads: tuple[str, ...]
    """Hashes of the workloads."""
    level: Level
    status: EvaluationStatus
    evidence: Evidence
    reasons: tuple[str, ...] = ()
    """Why it has its status, or is not `verified`: sentences a person can act on."""
    codes: tuple[ReasonCode, ...] = ()
    """The code of each reason, in the same order; empty in evaluations that were stored without codes."""
    stages: tuple[StageResult, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()
    correctness: Correctness | None = None
    performance: Performance | None = None
    """None unless PASSED (and timing was asked for)."""
    kernels: tuple[KernelUse, ...] = ()
    """What did the work."""
    own_share: float | None = None
    """Share of the time spent in the candidate's own kernels, if measured."""
    metrics: tuple[Metric, ...] = ()
    """What was measured of this very solution; one that was not collected is not there."""
    classification: Classification | None = None
    """The limit of the solution, if enough was measured to say so."""
    findings: tuple[Finding, ...] = ()
    """What the compiler and the profiler say about its kernels and lines."""
    resources: tuple[ResourceUsage, ...] = ()
    """Of its GPU kernels, by kernel and target, if they were compiled ahead of time."""
    environment: Environment
    log: str = ""
    """Tail of what the candidate printed."""
    seconds: float = 0.0
    """Wall time of the whole evaluation."""
    timestamp: datetime

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.performance is not None and self.status is not EvaluationStatus.PASSED:
            raise ValueError("only a PASSED evaluation has a performance")
        if self.evidence is Evidence.VERIFIED and (
            self.status is not EvaluationStatus.PASSED or self.performance is None
        ):
            raise ValueError("verified needs PASSED and a performance")
        if self.codes and len(self.codes) != len(self.reasons):
            raise ValueError("each reason needs one code")
        return self

    @property
    def speedup(self) -> dict[str, Interval]:
        """Speedup by baseline; empty if it was not timed."""
        return self.performance.speedup if self.performance else {}

    @property
    def speedup_over_best(self) -> Interval | None:
        """Speedup against the fastest baseline; None if it was not timed."""
        return self.performance.speedup_over_best if self.performance and self.speedup else None

    def because(self, code: ReasonCode) -> bool:
        """Whether a reason has this code."""
        return code in self.codes

    def reasons_with(self, code: ReasonCode) -> tuple[str, ...]:
        """The reasons that have this code."""
        return tuple(text for text, own in zip(self.reasons, self.codes, strict=False) if own is code)

    def seconds_by_stage(self) -> dict[str, float]:
        """Where the seconds went: by name of the stage, and the rest; they add up to `seconds`."""
        found: dict[str, float] = {}
        for stage in self.stages:
            found[stage.name] = found.get(stage.name, 0.0) + stage.seconds
        return {**found, OUTSIDE: self.seconds - sum(found.values())}

    @property
    def passed(self) -> bool:
        return self.status is EvaluationStatus.PASSED

    @property
    def reused(self) -> str:
        """The evaluation of an earlier run that this is a copy of, in words; empty if it was made anew."""
        return self.environment.notes.get(REUSED, "")

    @property
    def copy_of(self) -> str:
        """Identifier of the evaluation of the same source that this is a copy of; empty if there is none."""
        notes = self.environment.notes
        return "" if JUDGED in notes else notes.get(COPY_OF, "")

    @property
    def verified(self) -> bool:
        return self.evidence is Evidence.VERIFIED

    @property
    def suspicious(self) -> bool:
        return self.evidence is Evidence.SUSPICIOUS


@dataclass(frozen=True)
class BestBaseline:
    """The fastest baseline of a region. Speedups over it compare verdicts that measured different baselines:
    all measure eager, and some of them eager alone."""

    name: str = "eager"
    over_eager: float = 1.0
    """Its speed over eager's."""

    @classmethod
    def of(cls, evaluations: Iterable[Evaluation | None]) -> Self:
        """The fastest one in any verdict on a region, by the median if several measured it."""
        found: dict[str, list[float]] = {"eager": [1.0]}
        for speedup in (evaluation.speedup for evaluation in evaluations if evaluation is not None):
            eager = speedup.get("eager")
            for name, interval in speedup.items():
                if eager and interval.point > 0 and isfinite(ratio := eager.point / interval.point):
                    found.setdefault(name, []).append(ratio)
        medians = {name: median(ratios) for name, ratios in found.items()}
        name = max(medians, key=medians.__getitem__)
        return cls(name, medians[name])

    def interval(self, evaluation: Evaluation | None) -> Interval | None:
        """Speedup of a solution over this baseline: as measured, else from the one over eager. None if it was
        not timed."""
        known = evaluation.speedup if evaluation is not None else {}
        eager = known.get("eager")
        if eager is None or self.name in known:
            return known.get(self.name)
        point, low, high = (x / self.over_eager for x in (eager.point, eager.low, eager.high))
        return Interval(point=point, low=low, high=high)

    def speedup(self, evaluation: Evaluation | None) -> float | None:
        """The point of `interval`."""
        interval = self.interval(evaluation)
        return interval.point if interval is not None else None
