"""Moves on a whole model: rewrites of its graph that need no kernel, one file each."""

from ._base import MOVES, MoveRewrite, carry_out

__all__ = ["MOVES", "MoveRewrite", "carry_out"]
