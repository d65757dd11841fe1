"""Strategies and what happened when they were tried."""

from .base import KnowledgeBase, KnowledgeStats
from .belief import Posterior, posterior
from .cards import load_cards, parse_card
from .context import context_for
from .transfer import export_knowledge, import_knowledge

__all__ = [
    "KnowledgeBase",
    "KnowledgeStats",
    "Posterior",
    "context_for",
    "export_knowledge",
    "import_knowledge",
    "load_cards",
    "parse_card",
    "posterior",
]
