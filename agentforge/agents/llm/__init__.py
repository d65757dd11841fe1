"""Author, planners, coder, editor and judge that ask a language model."""

from .author import LLMAuthor
from .coder import LLMCoder
from .editor import LLMEditor
from .judge import LLMJudge
from .model_planner import LLMModelPlanner
from .planner import LLMPlanner

__all__ = ["LLMAuthor", "LLMCoder", "LLMEditor", "LLMJudge", "LLMModelPlanner", "LLMPlanner"]
