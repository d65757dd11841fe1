"""
problem: neighbour_pairs
style: A sweep over points sorted by their first coordinate counts the pairs of each point, then memory of the right size is filled.
"""

import torch
from agentforge_cpp import load

lib = load(__file__, "kernel.cpp")


class ModelNew(torch.nn.Module):
    def forward(self, points):
        if points.dim() != 2 or points.shape[1] == 0:
            raise ValueError("points with coordinates are expected")
        n, width = points.shape
        points = points.contiguous()
        order = points[:, 0].argsort()
        counts = torch.empty(n, dtype=torch.int64)
        lib.count(points, order, counts, n, width, 20)
        ends = counts.cumsum(0)
        total = int(ends[-1]) if n else 0
        pairs = torch.empty(2, total, dtype=torch.int64)
        squares = torch.empty(total)
        lib.fill(points, order, ends - counts, pairs, squares, n, width, 20, total)
        return pairs, squares.sqrt_()
