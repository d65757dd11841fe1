"""Search policies: who is the next parent."""

from ._base import Choice, Node, SearchPolicy, Tree, policies

__all__ = ["Choice", "Node", "SearchPolicy", "Tree", "policies"]
