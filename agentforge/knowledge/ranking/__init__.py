"""How experience ranks strategies: what other contexts let expect, and what a context's own results say."""

from .belief import Posterior, best_alone, posterior, with_claims
from .effects import Effects
from .similarity import Request, nearest, similarity

__all__ = [
    "Effects",
    "Posterior",
    "Request",
    "best_alone",
    "nearest",
    "posterior",
    "similarity",
    "with_claims",
]
