"""The optimization loop: select, plan, code, evaluate, judge, record."""

from ._base import Agents, Evaluator, Knowledge, OnEvent, SearchResult, Win
from .journal import Journal
from .meter import Meter
from .search import Session, run_search
from .standing import Standing

__all__ = [
    "Agents",
    "Evaluator",
    "Journal",
    "Knowledge",
    "Meter",
    "OnEvent",
    "SearchResult",
    "Session",
    "Standing",
    "Win",
    "run_search",
]
