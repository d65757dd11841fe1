"""Chance by counter: a draw depends on the run, the definition and the number of attempts alone."""

from __future__ import annotations

from hashlib import blake2b
from random import Random

from ._base import Tree


def draw(tree: Tree, policy: str) -> Random:
    """A generator for one decision of `policy` in this tree: the same after a resume."""
    return draw_by(tree.seed, tree.bottleneck, policy, str(len(tree.nodes)))


def draw_by(*parts: str) -> Random:
    """A generator for one decision, which these parts name."""
    text = "\0".join(parts)
    return Random(int.from_bytes(blake2b(text.encode(), digest_size=8).digest()))
