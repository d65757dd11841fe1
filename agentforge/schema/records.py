"""What a run keeps of itself beside its profile and its attempts: at most one record of each class.

Records are state: they decide how a run goes on. Events only tell what happened.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, Self

from pydantic import Field

from ._base import FrozenModel, NonEmptyString, RunRecord, expanded
from .definition import Precision
from .errors import UsageError
from .search import MoveKind

_FORM = "--allow bf16 --metric metric.py:accuracy --bound 0.5%"


class Permission(FrozenModel):
    """Products may be computed in a lower precision if a metric of the user's stays within a bound."""

    precision: Precision
    """`bf16`: bfloat16 operands, sums in float32. `int8`: 8-bit operands, sums in int32."""
    metric: NonEmptyString
    """`/path/file.py:function`. The function gets the model and returns a number."""
    bound: float = Field(ge=0, allow_inf_nan=False)
    """Largest allowed change of the metric, in either direction."""
    relative: bool
    """Whether the bound is a share of the original model's metric."""

    @classmethod
    def parse(cls, allow: str, metric: str, bound: str | float | None) -> Self | None:
        """The permission that options give; None if there is none.

        Args:
            allow: `bf16`, `int8`, or empty.
            metric: `file.py:function`.
            bound: `0.5%` of the original metric, or an absolute difference such as `0.01`.

        Raises:
            UsageError: an option is missing or cannot be read.
        """
        given = bound is not None and bound != ""
        if not allow and not metric and not given:
            return None
        if not allow:
            raise UsageError(f"--metric and --bound go with --allow: {_FORM}")
        if allow not in ("bf16", "int8"):
            raise UsageError(f"--allow takes bf16 or int8, not {allow!r}: {_FORM}")
        if not metric or bound is None or not given:
            raise UsageError(
                f"--allow {allow} changes the model's answers: give a metric of yours and a bound too, "
                f"{_FORM.replace('bf16', allow)}"
            )
        file, _, function = metric.rpartition(":")
        if not file.endswith(".py") or not function.isidentifier():
            raise UsageError(
                f"--metric takes FILE.py:FUNCTION, for example metric.py:accuracy, not {metric!r}"
            )
        path = expanded(file).absolute()
        value, relative = _number(bound)
        return cls(precision=allow, metric=f"{path}:{function}", bound=value, relative=relative)

    @property
    def file(self) -> Path:
        """The metric's file."""
        return Path(self.metric.rpartition(":")[0])

    @property
    def function(self) -> str:
        """The metric's name."""
        return self.metric.rpartition(":")[2]

    @property
    def limit(self) -> str:
        """The bound as the user writes it: `0.5%` or `0.01`."""
        return f"{self.bound * 100:g}%" if self.relative else f"{self.bound:g}"

    def accepts(self, original: float, changed: float) -> bool:
        """Whether a metric that changed from the original model's value is within the bound."""
        return abs(changed - original) <= self.bound * (abs(original) if self.relative else 1.0)


def _number(bound: str | float) -> tuple[float, bool]:
    """A bound's value, and whether it is relative."""
    text = str(bound).strip()
    relative = text.endswith("%")
    try:
        value = float(text.removesuffix("%")) / (100 if relative else 1)
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and value >= 0):
        raise UsageError(
            "--bound takes a share of the original metric, for example 0.5%, or an absolute difference, "
            f"for example 0.01, not {bound!r}"
        )
    return value, relative


class RunSettings(RunRecord):
    """The settings that a run began with; a resume uses them for what the user does not set again."""

    record_name = "settings"
    search: dict[str, Any] = {}
    """Fields of `SearchSettings`."""
    referee: dict[str, Any] = {}
    """Fields of `RefereeSettings`."""
    llm: dict[str, Any] = {}
    """Fields of `LLMSettings`."""
    device: str = ""
    """Kind of device that kernels are measured on; empty in old runs, whose target names it."""
    out: str | None = None
    """Folder that the user asked for; None puts the artifact below the run's own folder."""
    permission: Permission | None = None
    """Lower precision that the user allowed for this run."""


class OriginalMetric(RunRecord):
    """The metric of a `Permission`, of the original model."""

    record_name = "metric"
    value: float = Field(allow_inf_nan=False)


class GivenKernel(FrozenModel):
    """A kernel that the run begins with, judged as an attempt before the search."""

    strategy: NonEmptyString
    why: str = ""
    """Diagnosis of its plan."""
    solution: str
    """Hash."""


class GivenKernels(RunRecord):
    """Kernels that a run of kind `kernel` or `sequential` begins with."""

    record_name = "kernels"
    kernels: tuple[GivenKernel, ...]
    """In the order of their attempts' numbers, from 1."""


class Intent(RunRecord):
    """What a run of kind `intent` shall compute."""

    record_name = "intent"
    text: NonEmptyString
    """As the user wrote it."""
    written: bool = False
    """True once a reference was written and accepted; the run's target is then that reference."""
    given_up: int = 0
    """Sessions that ended without a usable answer; the next one asks anew."""


class Priors(RunRecord):
    """The knowledge base's expectation before the run's first attempt."""

    record_name = "priors"
    by_bottleneck: dict[str, float]
    """Hash of the definition to the probability, 0 to 1, that an attempt gains."""
    strategies: dict[str, dict[str, float]] = {}
    """Hash of the definition to the expected gain in log speedup of each applicable strategy, best first."""


class SearchSummary(RunRecord):
    """How the run's last search ended."""

    record_name = "search"
    reason: str
    """Why it stopped, for a person."""
    attempts: int = 0
    wins: int = 0
    """Bottlenecks with a verified solution that is faster than eager."""
    nothing_left: bool = False
    """It stopped before the budget was used up: a larger one would find nothing more to try."""


class StitchResult(RunRecord):
    """What the run produced at its end, and how it was proven."""

    record_name = "stitch"
    chosen: dict[str, str] = {}
    """Hash of a bottleneck's definition to hash of the solution that stitching was given."""
    artifact: str = ""
    """Folder; empty if nothing was written."""
    mode: str = ""
    """What the artifact runs: see `Report.mode`."""
    summary: str = ""
    """Why the artifact is what it is, in a sentence."""
    proven: bool = False
    """The end-to-end evaluation is verified, and every kernel in the artifact was seen to run."""
    cut_short: bool = False
    """The time ended, the whole model could not be judged, the referee failed, or a busy machine or a limit
    of time spoiled its verdict, before all was tried: a resume tries again."""
    unjudged: bool = False
    """The whole model could not be judged, and would not be if the same were tried again: only a resume with
    new limits does."""
    solution: str | None = None
    """Hash of the stitched solution."""
    evaluation: str | None = None
    """Identifier of the end-to-end evaluation."""
    sol_s: float | None = None
    """Speed-of-light seconds of one forward, for scores; None if they are not known, or a measured time is
    below them."""
    calls: dict[str, int] = {}
    """Hash of a definition to the calls of its kernels that were seen in the end-to-end run."""
    tokens_per_second: dict[str, dict[str, float]] = {}
    """Of a generation, for `prefill` and `decode`: by baseline, and of the `artifact`."""
    packed: tuple[str, ...] = ()
    """Hashes of definitions that run in oneDNN from packed weights."""
    moves: tuple[MoveKind, ...] = ()
    """Moves on the whole model that the artifact contains."""
    notes: tuple[str, ...] = ()


class ArtifactReport(RunRecord):
    """Content of the artifact's `report.json`, so that another machine can write the artifact."""

    record_name = "report"
    data: dict[str, Any]


MOST_DIRECTIVE = 1200
"""Most characters of a directive."""


class Directive(FrozenModel):
    """A fragment of the coder's prompt that a language model wrote."""

    id: NonEmptyString
    """`d1`, `d2` and so on, in the order in which they were written."""
    parent: str
    """Identifier of the fragment that it edits; `plain` is the prompt without one."""
    text: str = Field(max_length=MOST_DIRECTIVE)
    """Empty if the model gave no usable one."""
    author: str = ""
    """The model, as the user typed it."""


class Directives(RunRecord):
    """The fragments of a run, oldest first."""

    record_name = "directives"
    written: tuple[Directive, ...] = ()


class NativeVerdict(RunRecord):
    """What the checker of a suite's own format says of what a run produced. It decides nothing."""

    record_name = "native"
    criterion: str = "the task's own checker"
    """What judged, for people."""
    evaluation: str
    """Identifier of the end-to-end evaluation of the same result."""
    accepted: bool | None = None
    """None if the checker gave no verdict."""
    message: str = ""
    """Its words, or why it gave no verdict."""


class JudgingCode(RunRecord):
    """Which code judged the run."""

    record_name = "code"
    codes: tuple[str, ...]
    """A hash for each code that a session of the run had, in their order."""
