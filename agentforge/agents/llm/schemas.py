"""Answers of the roles. Docstrings of the fields are sent to the models as descriptions."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from agentforge.schema import MOST_DIRECTIVE, Bound


class _Answer(BaseModel):
    model_config = ConfigDict(use_attribute_docstrings=True)


class Cited(_Answer):
    """A measured value."""

    metric: str
    """Its name, exactly as in the list of measured values."""
    value: float
    """Its value, exactly as in the list."""


class Chosen(_Answer):
    """A parameter of the strategy."""

    name: str
    value: int | float | bool | str


def _bound(said: object) -> object:
    """Read `memory-bound` and the like, as prompts call it."""
    return next((b for b in Bound if said in (b.adjective, f"{b.value}-bound")), said)


class PlanAnswer(_Answer):
    """The planner's answer."""

    bottleneck: Annotated[Bound, BeforeValidator(_bound)]
    """What limits the region now."""
    diagnosis: str = Field(min_length=1)
    """Why it is slow, in one or two sentences."""
    evidence: list[Cited] = Field(min_length=1)
    """The measured values that show it."""
    nothing_left: bool = False
    """True if no further attempt at the region is worth its cost: the region stays as it is now, and
    strategy and steps are empty."""
    strategy: str = Field(max_length=80)
    """Identifier of one strategy from the list, or a new lower-case-slug for your own technique."""
    steps: list[str]
    """The steps, in order, concrete enough for a programmer who knows the region."""
    parameters: list[Chosen] = []
    """Values for the strategy's parameters, if it has any."""
    expected_speedup: float = Field(gt=0, le=1e4)
    """Expected speedup over the best baseline. It is compared with the measured one."""
    risks: list[str] = []
    """What may go wrong."""


class LearnedPlanAnswer(PlanAnswer):
    """The planner's answer if it is shown lessons of the run."""

    uses: list[int] = []
    """Numbers of the lessons learned in this run that the plan rests on; usually none."""


class PlannedRegion(_Answer):
    """The decision on one region."""

    name: str
    """Its name, exactly as in the list of regions."""
    fuse: bool
    """True: its operators become new kernels. False: it stays as it is."""
    expected_speedup: float = Field(gt=0, le=1e4)
    """Expected speedup of the region alone over eager, at most its speed of light; 1 if it stays."""
    why: str = Field(min_length=1, max_length=300)
    """The reason, in one sentence."""


class ModelAnswer(_Answer):
    """The planner's answer for a whole model."""

    diagnosis: str = Field(min_length=1)
    """Where the model spends its time and how much can be saved, in one or two sentences."""
    evidence: list[Cited] = Field(min_length=1)
    """The measured values that show it."""
    merges: list[str] = []
    """Names of the possible merges to carry out, if there are any. Each becomes a region in the place of its
    parts; two that share a part cannot be chosen together."""
    moves: list[str] = []
    """Names of the possible moves to try; all of them if none is named."""
    regions: list[PlannedRegion] = Field(min_length=1)
    """The regions in the order of work, chosen merges among them."""


class DirectiveAnswer(_Answer):
    """The editor's answer."""

    fragment: str = Field(min_length=1, max_length=MOST_DIRECTIVE)
    """The whole new fragment of the programmer's prompt, at most 1200 characters."""


class RepairAnswer(_Answer):
    """The judge's answer after a failure. The failure's class comes from the referee's status."""

    cause: str = Field(min_length=1)
    """The cause in the code, with its place."""
    fix: str = Field(min_length=1)
    """The smallest change that fixes it."""
    hopeless: bool = False
    """True only if the approach itself cannot work here."""
    evidence: list[Cited] = []
    """The measured values that show the cause, if there are any."""


class OptimizeAnswer(_Answer):
    """The judge's answer after a success."""

    verdict: Literal["optimize", "accept", "abandon"]
    """`optimize`: one change is likely to gain. `accept`: nothing is left to gain. `abandon`: this approach
    is far behind and leads nowhere."""
    bottleneck: str = Field(min_length=1)
    """The one thing that limits it now."""
    evidence: list[Cited] = Field(min_length=1)
    """The measured values that show it."""
    change: str = Field(min_length=1)
    """The one change to make next."""
    expected_gain: float = Field(ge=-1, le=1e4)
    """Expected gain as a fraction: 0.2 for 20% faster."""
    lesson: str = Field(default="", max_length=600)
    """One sentence for future planners of such regions on such machines. It follows from the measurements,
    including expectations that failed. Empty if there is nothing new."""
    refuted: list[int] = []
    """Numbers of the attempts whose listed lessons these measurements contradict; usually none."""
