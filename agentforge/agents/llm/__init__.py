"""Planner, coder and judge that ask a language model."""

from .coder import LLMCoder
from .judge import LLMJudge
from .planner import LLMPlanner

__all__ = ["LLMCoder", "LLMJudge", "LLMPlanner"]
