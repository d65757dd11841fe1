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
from ._create import check_agents, create_coder, create_judge, create_planner

__all__ = [
    "CannotCode",
    "Coder",
    "Draft",
    "Hardware",
    "Judge",
    "Past",
    "Planner",
    "Task",
    "check_agents",
    "coders",
    "create_coder",
    "create_judge",
    "create_planner",
    "judges",
    "planners",
]
