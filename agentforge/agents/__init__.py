"""Planner, coder and judge: they propose data, the supervisor decides."""

from ._base import (
    Author,
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
from ._create import check_agents, create_author, create_coder, create_judge, create_planner

__all__ = [
    "Author",
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
    "create_author",
    "create_coder",
    "create_judge",
    "create_planner",
    "judges",
    "planners",
]
