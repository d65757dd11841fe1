"""The database: runs with their records and events, attempts, solutions, evaluations, outcomes."""

from ._evaluations import Promotion, evaluation_id
from ._records import Record
from .knowledge.outcomes import Experience, VerifiedSolution
from .store import Store

__all__ = ["Experience", "Promotion", "Record", "Store", "VerifiedSolution", "evaluation_id"]
