"""Why a model could not be captured or profiled, in words that help its user."""

from __future__ import annotations

from agentforge.isolation.child_process import ChildFailure

BY_VALUES = "its control flow or its shapes depend on a tensor's values (if, .item(), nonzero)"
_BY_VALUES = ("GuardOnDataDependentSymNode", "DataDependentOutputException", "DynamicOutputShapeException")
"""What torch raises then."""
_MOST = 160
"""Characters of a message."""
_INTERNALS = (
    "torch._",
    "fx.",
    "dynamo",
    "Dynamo",
    "aten.",
    "FakeTensor",
    "%",
    "Traceback",
    "0x",
    "num_users",
)
"""Words of messages about the exporter itself, which do not help the user."""


def plain_reason(message: str) -> str:
    """The first line of an exception's message, cut; another clause if it is about torch's internals."""
    first = next((line.strip() for line in message.splitlines() if line.strip()), "")
    internal = any(word in first for word in _INTERNALS)
    return first[:_MOST] if first and not internal else "no simpler reason is known"


def reason_of(failure: ChildFailure) -> str:
    """Why a child process did not return, as one clause."""
    if failure.kind != "raised":
        return str(failure)
    if failure.error_type in _BY_VALUES:
        return BY_VALUES
    return f"{failure.error_type}: {plain_reason(failure.detail)}"
