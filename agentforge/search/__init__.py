"""Search policies: who is the next parent."""

from ._base import Choice, Node, SearchPolicy, Tree, policies
from .best_first import BestFirst, expected_gain

__all__ = ["BestFirst", "Choice", "Node", "SearchPolicy", "Tree", "expected_gain", "policies"]
