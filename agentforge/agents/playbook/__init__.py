"""The built-in playbook: planner, coder and judge that work by rules, without a language model."""

from .coder import PlaybookCoder
from .judge import PlaybookJudge
from .planner import PlaybookPlanner

__all__ = ["PlaybookCoder", "PlaybookJudge", "PlaybookPlanner"]
