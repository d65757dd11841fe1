"""The search: allocators say which bottleneck is next, tree policies which parent."""

from ._base import Allocator, Choice, Node, Offer, Tree, TreePolicy, allocators, next_choice, policies
from .best_first import BestFirst
from .cells import Cell, cell_of, dimensions, highest_cell, mean_gains
from .chance import draw, draw_by
from .gain_per_cost import GainPerCost, expected_gain
from .repairs import newest_repairable
from .reward import BASELINE, gain_of, reward_of

__all__ = [
    "BASELINE",
    "Allocator",
    "BestFirst",
    "Cell",
    "Choice",
    "GainPerCost",
    "Node",
    "Offer",
    "Tree",
    "TreePolicy",
    "allocators",
    "cell_of",
    "dimensions",
    "draw",
    "draw_by",
    "expected_gain",
    "gain_of",
    "highest_cell",
    "mean_gains",
    "newest_repairable",
    "next_choice",
    "policies",
    "reward_of",
]
