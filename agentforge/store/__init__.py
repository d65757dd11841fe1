"""The database: runs, attempts, solutions, evaluations, events, outcomes."""

from ._evaluations import evaluation_id
from .store import Store

__all__ = ["Store", "evaluation_id"]
