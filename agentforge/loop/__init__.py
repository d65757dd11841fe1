"""The optimization loop: select, plan, code, evaluate, judge, record."""

from ._base import Agents, Knowledge, OnEvent, SearchResult, Win
from .handed import Proposal, hand_in
from .journal import Journal
from .meter import Meter
from .search import Session, collect, make_supervisor, run_search
from .standing import Standing, gain_over_best
from .supervisor import Supervisor

__all__ = [
    "Agents",
    "Journal",
    "Knowledge",
    "Meter",
    "OnEvent",
    "Proposal",
    "SearchResult",
    "Session",
    "Standing",
    "Supervisor",
    "Win",
    "collect",
    "gain_over_best",
    "hand_in",
    "make_supervisor",
    "run_search",
]
