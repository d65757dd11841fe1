"""What happens in a run: one model per kind of event. Views and trackers read nothing else.

An event tells, it never decides: what a run needs in order to continue is in its records.
"""

from __future__ import annotations

import json
from typing import Annotated, Any, get_args

from pydantic import Field, TypeAdapter, ValidationError

from ._base import Event
from .attempts import (
    AttemptBuilding,
    AttemptCoded,
    AttemptCoding,
    AttemptEvaluated,
    AttemptEvaluating,
    AttemptEvent,
    AttemptFailed,
    AttemptJudged,
    AttemptJudging,
    AttemptPlanned,
    AttemptPlanning,
    AttemptReflected,
    Promotion,
)
from .calls import LLMAnswered, LLMBegun, LLMFailed
from .run import (
    BottleneckClosed,
    BudgetLeft,
    IntentWritten,
    ModelPlanned,
    ProfiledBottleneck,
    ProfileDone,
    ProfileRanked,
    ProfileStarted,
    Progress,
    RunFailed,
    RunFinished,
    RunInterrupted,
    RunResumed,
    RunStarted,
    SearchDone,
    SearchStarted,
    StitchDone,
    StitchStarted,
)

__all__ = [
    "EVENTS",
    "AnyEvent",
    "AttemptBuilding",
    "AttemptCoded",
    "AttemptCoding",
    "AttemptEvaluated",
    "AttemptEvaluating",
    "AttemptEvent",
    "AttemptFailed",
    "AttemptJudged",
    "AttemptJudging",
    "AttemptPlanned",
    "AttemptPlanning",
    "AttemptReflected",
    "BottleneckClosed",
    "BudgetLeft",
    "Event",
    "IntentWritten",
    "LLMAnswered",
    "LLMBegun",
    "LLMFailed",
    "ModelPlanned",
    "ProfileDone",
    "ProfileRanked",
    "ProfileStarted",
    "ProfiledBottleneck",
    "Progress",
    "Promotion",
    "RunFailed",
    "RunFinished",
    "RunInterrupted",
    "RunResumed",
    "RunStarted",
    "SearchDone",
    "SearchStarted",
    "StitchDone",
    "StitchStarted",
    "UnknownEvent",
    "event_from_json",
    "event_to_json",
]


class UnknownEvent(Event):
    """A stored event that this version has no model for, or whose fields do not fit it."""

    data: dict[str, Any] = {}
    """As it was stored."""


AnyEvent = (
    RunStarted
    | RunResumed
    | RunFinished
    | RunInterrupted
    | RunFailed
    | Progress
    | IntentWritten
    | ProfileStarted
    | ProfileDone
    | SearchStarted
    | ModelPlanned
    | AttemptPlanning
    | AttemptPlanned
    | AttemptCoding
    | AttemptCoded
    | AttemptBuilding
    | AttemptEvaluating
    | AttemptEvaluated
    | AttemptJudging
    | AttemptJudged
    | AttemptReflected
    | AttemptFailed
    | Promotion
    | ProfileRanked
    | BottleneckClosed
    | BudgetLeft
    | SearchDone
    | StitchStarted
    | StitchDone
    | LLMBegun
    | LLMAnswered
    | LLMFailed
)
"""Every event that this version writes; `kind` says which one."""

EVENTS: tuple[type[Event], ...] = get_args(AnyEvent)
"""The models of `AnyEvent`, in the order in which a run tells them."""

_ADAPTER: TypeAdapter[AnyEvent] = TypeAdapter(Annotated[AnyEvent, Field(discriminator="kind")])


def event_to_json(event: Event) -> str:
    """An event as the store keeps it: `seq`, `run`, `time`, `kind` and the other fields as `data`."""
    line = json.loads(event.model_dump_json())
    header = {name: line.pop(name) for name in ("seq", "run", "time", "kind")}
    return json.dumps({**header, "data": line.get("data", {}) if isinstance(event, UnknownEvent) else line})


def event_from_json(text: str) -> AnyEvent | UnknownEvent:
    """A stored event; an `UnknownEvent` if no model fits it, so that every stream stays readable."""
    line = json.loads(text)
    data = line.pop("data", {})
    try:
        return _ADAPTER.validate_python({**data, **line})
    except ValidationError:
        return UnknownEvent(**line, data=data)
