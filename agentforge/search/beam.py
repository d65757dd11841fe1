"""The policy `beam`: the best few attempts each get some children, level by level (KernelAgent)."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from agentforge.schema import FrozenModel

from ._base import Choice, Tree
from .levels import select_by_levels


class Beam(FrozenModel):
    """Keeps the best attempts by reward. The planner sees the plans of siblings and proposes another one."""

    name: ClassVar[str] = "beam"
    beam: int = Field(default=2, ge=1)
    """Attempts that are kept."""
    children: int = Field(default=2, ge=1)
    """Attempts on each of them in one level."""
    idle: int = Field(default=2, ge=1)
    """Levels in a row without a better reward before the search leaves the bottleneck."""
    repairs: int = Field(default=2, ge=1)
    """Repairs in a row before a line of attempts is given up."""

    def select(self, tree: Tree) -> Choice | None:
        """A failure to repair, else the next attempt of the level under way."""
        return select_by_levels(
            tree,
            starts=self.beam * self.children,
            beam=self.beam,
            children=self.children,
            idle=self.idle,
            levels=None,
            repairs=self.repairs,
        )
