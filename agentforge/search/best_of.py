"""The policy `best-of`: several attempts, the best one goes on (FSR: feature search and reinforcement)."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from agentforge.schema import FrozenModel

from ._base import Choice, Tree
from .levels import select_by_levels


class BestOf(FrozenModel):
    """The best of `attempts` starts, then the best of `attempts` attempts on it, and so on."""

    name: ClassVar[str] = "best-of"
    attempts: int = Field(default=4, ge=1)
    """Of each level."""
    levels: int = Field(default=4, ge=1)
    """Most levels; a level without a better reward is the last one too."""
    repairs: int = Field(default=2, ge=1)
    """Repairs in a row before a line of attempts is given up."""

    def select(self, tree: Tree) -> Choice | None:
        """A failure to repair, else the next attempt of the level under way."""
        return select_by_levels(
            tree,
            starts=self.attempts,
            beam=1,
            children=self.attempts,
            idle=1,
            levels=self.levels,
            repairs=self.repairs,
        )
