"""Events of a run and its phases."""

from __future__ import annotations

from typing import Literal

from pydantic import ConfigDict

from .._base import FrozenModel
from ..search import Budget, ModelPlan
from ..target import Profile
from ._base import Event


class _RunOpened(Event):
    target: str
    """The target's name."""
    device: str
    """Name of the device."""
    out: str | None = None
    """Folder for the artifact; None is below the run's own folder."""
    seconds_used: float = 0.0
    """Wall time that earlier sessions of the run used up."""


class RunStarted(_RunOpened):
    """A new run begins its first phase."""

    kind: Literal["run.started"] = "run.started"


class RunResumed(_RunOpened):
    """A run continues where it stopped."""

    kind: Literal["run.resumed"] = "run.resumed"


class _RunEnded(Event):
    error: str = ""
    """Why it did not finish; empty if it did."""


class RunFinished(_RunEnded):
    """All phases are done."""

    kind: Literal["run.finished"] = "run.finished"


class RunInterrupted(_RunEnded):
    """The user stopped the run; it can be resumed."""

    kind: Literal["run.interrupted"] = "run.interrupted"


class RunFailed(_RunEnded):
    """An error stopped the run; it can be resumed."""

    kind: Literal["run.failed"] = "run.failed"


class Progress(Event):
    """What a phase is doing at the moment, for a person."""

    kind: Literal["progress"] = "progress"
    text: str


class IntentWritten(Event):
    """A language model wrote a reference, and the referee accepted it."""

    kind: Literal["intent.written"] = "intent.written"
    reference: str
    """Python source."""
    notes: tuple[str, ...] = ()


class ProfileStarted(Event):
    """The target is about to be profiled."""

    kind: Literal["profile.started"] = "profile.started"


class ProfiledBottleneck(FrozenModel):
    """A bottleneck, as views list it."""

    model_config = ConfigDict(extra="ignore")

    hash: str
    """Of its definition."""
    name: str
    op_type: str = ""
    share: float
    """Of the target's eager time, 0 to 1."""
    time_s: float
    """Eager seconds of all its call sites in one forward."""
    sol_s: float
    """Speed-of-light seconds of all its call sites."""
    gain_s: float = 0.0
    """End-to-end seconds that can still be gained."""
    speedup_limit: float = 1.0
    """Of the whole target at this bottleneck's speed of light, by Amdahl's law."""
    bound: str = ""
    optimizable: bool
    """False if no kernel is searched for it: see `obstacle`."""


class ProfileDone(Event):
    """The profile is there; a resumed run tells it again."""

    kind: Literal["profile.done"] = "profile.done"
    total_s: float
    """Eager seconds of one forward."""
    bottlenecks: tuple[ProfiledBottleneck, ...] = ()
    """Largest gain first."""
    notes: tuple[str, ...] = ()

    @classmethod
    def of(cls, profile: Profile) -> ProfileDone:
        """The event for a profile."""
        return cls(total_s=profile.total_s, bottlenecks=_rows(profile), notes=profile.notes)


class ProfileRanked(Event):
    """The bottlenecks were ranked anew after a promotion, by Amdahl's law; nothing was measured again."""

    kind: Literal["profile.ranked"] = "profile.ranked"
    total_s: float
    """Seconds of one forward with all promoted solutions in place."""
    bottlenecks: tuple[ProfiledBottleneck, ...] = ()
    """Largest gain first; times and shares are those that remain."""

    @classmethod
    def of(cls, profile: Profile) -> ProfileRanked:
        """The event for a profile with solutions in place."""
        return cls(total_s=profile.total_s, bottlenecks=_rows(profile))


def _rows(profile: Profile) -> tuple[ProfiledBottleneck, ...]:
    return tuple(
        ProfiledBottleneck(
            hash=b.definition.hash,
            name=b.definition.name,
            op_type=b.definition.op_type,
            share=b.share,
            time_s=b.time_s,
            sol_s=b.sol_s,
            gain_s=b.gain_s,
            speedup_limit=b.speedup_limit,
            bound=b.bound,
            optimizable=b.optimizable,
        )
        for b in profile.bottlenecks
    )


class SearchStarted(Event):
    """The search begins; a resume does not repeat it."""

    kind: Literal["search.started"] = "search.started"
    budget: Budget = Budget()


class ModelPlanned(Event):
    """The plan for the whole model was made."""

    kind: Literal["model.planned"] = "model.planned"
    plan: ModelPlan


class BottleneckClosed(Event):
    """No further attempt is made at a bottleneck."""

    kind: Literal["bottleneck.closed"] = "bottleneck.closed"
    bottleneck: str
    """Hash of its definition."""
    reason: str


class BudgetLeft(Event):
    """The rest of each limit, after an attempt."""

    kind: Literal["budget"] = "budget"
    left: dict[str, float | None]
    """`minutes`, `attempts`, `dollars`; None is no limit."""


class SearchDone(Event):
    """The search ended."""

    kind: Literal["search.done"] = "search.done"
    reason: str
    """Why, for a person."""
    attempts: int = 0
    wins: int = 0
    """Bottlenecks with a verified solution that is faster than eager."""


class StitchStarted(Event):
    """The winners are put into the model and measured end to end."""

    kind: Literal["stitch.started"] = "stitch.started"
    chosen: dict[str, str] = {}
    """Hash of a definition to hash of its solution."""


class StitchLeft(Event):
    """A variant of the whole model is about to be judged."""

    kind: Literal["stitch.left"] = "stitch.left"
    variants: int = 0
    """Variants that may still be judged, at most; this one counts."""
    seconds: float | None = None
    """That they take, as long as earlier verdicts; None if there are none to compare with."""


class StitchDone(Event):
    """The run has its result; the record `StitchResult` has all of it."""

    kind: Literal["stitch.done"] = "stitch.done"
    artifact: str = ""
    """Folder; empty if nothing was written."""
    mode: str = ""
    summary: str = ""
    proven: bool = False
