"""The generators of random numbers that a process shares: torch's, Python's and numpy's."""

from __future__ import annotations

import random
import sys

import torch

FIXED = 0
"""Seed of all that code which is written for a reference may contain as a constant."""


def seed_generators(seed: int) -> None:
    """Seed all of them; numpy's if it is imported.

    Args:
        seed: from 0 to 2**64 - 1.
    """
    torch.manual_seed(seed)
    random.seed(seed)
    if numpy := sys.modules.get("numpy"):
        numpy.random.seed([seed & 0xFFFFFFFF, seed >> 32])


def seed_weights(seed: int) -> None:
    """Seed torch's generator by `seed`, the others by `FIXED`, as a constructor finds them.

    The state of a model, which torch draws, is loaded into a candidate. What the others draw is not: code
    that was written beside another construction has it as a constant.
    """
    seed_generators(FIXED)
    torch.manual_seed(seed)
