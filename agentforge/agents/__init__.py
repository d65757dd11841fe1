"""Planner, coder and judge: they propose data, the supervisor decides."""

from ._base import (
    CannotCode,
    Coder,
    Draft,
    Hardware,
    Judge,
    Past,
    Planner,
    Task,
    coders,
    judges,
    planners,
)

__all__ = [
    "CannotCode",
    "Coder",
    "Draft",
    "Hardware",
    "Judge",
    "Past",
    "Planner",
    "Task",
    "coders",
    "judges",
    "planners",
]
