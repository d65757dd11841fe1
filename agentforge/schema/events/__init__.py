"""What happens in a run: one model per kind of event. Views and trackers read nothing else.

An event tells, it never decides: what a run needs in order to continue is in its records.
"""

from __future__ import annotations

import json
from typing import Annotated, Any, get_args

from pydantic import Field, TypeAdapter, ValidationError

from . import attempts, calls, run
from ._base import Event


class UnknownEvent(Event):
    """A stored event that this version has no model for, or whose fields do not fit it."""

    data: dict[str, Any] = {}
    """As it was stored."""


AnyEvent = (
    run.RunStarted
    | run.RunResumed
    | run.RunFinished
    | run.RunInterrupted
    | run.RunFailed
    | run.Progress
    | run.IntentWritten
    | run.ProfileStarted
    | run.ProfileDone
    | run.SearchStarted
    | run.ModelPlanned
    | run.ProfileRanked
    | attempts.AttemptPlanning
    | attempts.AttemptPlanned
    | attempts.AttemptCoding
    | attempts.AttemptCoded
    | attempts.AttemptBuilding
    | attempts.AttemptEvaluating
    | attempts.AttemptEvaluated
    | attempts.AttemptJudging
    | attempts.AttemptJudged
    | attempts.AttemptReflected
    | attempts.AttemptFailed
    | attempts.Promotion
    | run.BottleneckClosed
    | run.BudgetLeft
    | run.SearchDone
    | run.StitchStarted
    | run.StitchLeft
    | run.StitchDone
    | calls.LLMBegun
    | calls.LLMAnswered
    | calls.LLMFailed
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
