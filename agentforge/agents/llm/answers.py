"""What the roles answer, as the schemas that the models are given."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from agentforge.schema import Bound


class _Answer(BaseModel):
    model_config = ConfigDict(use_attribute_docstrings=True)


class Cited(_Answer):
    """A measured value."""

    metric: str
    """Name, exactly as it stands in the list of measured values."""
    value: float
    """The value, as it stands there."""


class Chosen(_Answer):
    """A parameter of the strategy."""

    name: str
    value: int | float | bool | str


class PlanAnswer(_Answer):
    """The planner's answer."""

    bottleneck: Bound
    """What limits the region now."""
    diagnosis: str = Field(min_length=1)
    """Why it is slow, in one or two sentences."""
    evidence: list[Cited] = Field(min_length=1)
    """The measured values that the diagnosis rests on."""
    strategy: str = Field(min_length=1, max_length=80)
    """Identifier of one strategy from the list, or a new lower-case-slug for a technique of your own."""
    steps: list[str] = Field(min_length=1)
    """What to do, in order, concretely enough for a programmer who knows the region."""
    parameters: list[Chosen] = []
    """Values for the strategy's parameters, where it has some."""
    expected_speedup: float = Field(gt=0, le=1e4)
    """Over the best baseline; it is compared with what will be measured."""
    risks: list[str] = []
    """What may go wrong."""


class PlannedRegion(_Answer):
    """What becomes of one region."""

    name: str
    """Exactly as it stands in the list of regions."""
    fuse: bool
    """True: its operators become kernels of ours. False: it stays as it is."""
    expected_speedup: float = Field(gt=0, le=1e4)
    """Of the region alone over eager, not beyond its speed of light; 1 where it stays."""
    why: str = Field(min_length=1, max_length=300)
    """In one sentence."""


class ModelAnswer(_Answer):
    """The planner's answer for a whole model."""

    diagnosis: str = Field(min_length=1)
    """Where the model's time goes and what can be had of it, in one or two sentences."""
    evidence: list[Cited] = Field(min_length=1)
    """The measured values that the diagnosis rests on."""
    regions: list[PlannedRegion] = Field(min_length=1)
    """In the order of work."""


class RepairAnswer(_Answer):
    """The judge's answer after a failure, whose class the referee's status tells."""

    cause: str = Field(min_length=1)
    """What in the code causes it, with the place."""
    fix: str = Field(min_length=1)
    """The smallest change that mends it."""
    hopeless: bool = False
    """True only where the approach itself cannot work here."""
    evidence: list[Cited] = []
    """Measured values that the cause rests on, where there are any."""


class OptimizeAnswer(_Answer):
    """The judge's answer after a success."""

    verdict: Literal["optimize", "accept", "abandon"]
    """`optimize`: one change is likely to gain. `accept`: nothing is left to gain. `abandon`: this line
    is far behind and leads nowhere."""
    bottleneck: str = Field(min_length=1)
    """The one thing that limits it now."""
    evidence: list[Cited] = Field(min_length=1)
    """The measured values that say so."""
    change: str = Field(min_length=1)
    """The one change to make next."""
    expected_gain: float = Field(ge=-1, le=1e4)
    """Relative: 0.2 for 20% faster."""
    lesson: str = Field(default="", max_length=600)
    """One sentence that whoever plans next on such regions and machines should know, resting on what was
    measured here (what was expected and did not come is one); empty where nothing new was learned."""
    refuted: list[int] = []
    """Numbers of the attempts whose lessons, as listed, what was measured here contradicts; mostly none."""
