"""The optimization loop: select, plan, code, evaluate, judge, record."""

from ._base import Agents, OnEvent, SearchResult, Win
from .bottleneck_state import BottleneckState
from .budget import BudgetMeter
from .run_log import RunLog
from .runner import Session, collect, make_supervisor, run_search
from .steps import remeasure_all
from .submission import Proposal, submit
from .supervisor import Supervisor

__all__ = [
    "Agents",
    "BottleneckState",
    "BudgetMeter",
    "OnEvent",
    "Proposal",
    "RunLog",
    "SearchResult",
    "Session",
    "Supervisor",
    "Win",
    "collect",
    "make_supervisor",
    "remeasure_all",
    "run_search",
    "submit",
]
