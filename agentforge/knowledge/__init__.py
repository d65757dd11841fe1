"""Strategies and what happened when they were tried."""

from .advice import Advisor, line_of
from .base import APART, UNNAMED, KnowledgeBase, KnowledgeStats, PairGain
from .cards import Card, kind_of, load_folder, parse_card
from .check import Doubt, doubtful, remove
from .claims import ClaimVerdicts, JudgedClaim, UnjudgedClaim, judge_claims
from .context import WHOLE_REFERENCE, context_for
from .entries import lesson_text
from .lint import Fault, lint
from .propose import Draft, drafts
from .ranking import Posterior
from .symptoms import SymptomCell, symptom_matrix
from .transfer import Bundle, export_knowledge, import_knowledge, read_bundle, read_database
from .uses import CardUse, card_uses

__all__ = [
    "APART",
    "UNNAMED",
    "WHOLE_REFERENCE",
    "Advisor",
    "Bundle",
    "Card",
    "CardUse",
    "ClaimVerdicts",
    "Doubt",
    "Draft",
    "Fault",
    "JudgedClaim",
    "KnowledgeBase",
    "KnowledgeStats",
    "PairGain",
    "Posterior",
    "SymptomCell",
    "UnjudgedClaim",
    "card_uses",
    "context_for",
    "doubtful",
    "drafts",
    "export_knowledge",
    "import_knowledge",
    "judge_claims",
    "kind_of",
    "lesson_text",
    "line_of",
    "lint",
    "load_folder",
    "parse_card",
    "read_bundle",
    "read_database",
    "remove",
    "symptom_matrix",
]
