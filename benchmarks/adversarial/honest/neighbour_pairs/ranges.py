"""
problem: neighbour_pairs
style: Points sorted by one coordinate have a range of candidates each; ranges are written out, tested and sorted back.
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, points):
        if points.dim() != 2 or points.shape[1] == 0:
            raise ValueError("points with coordinates are expected")
        n = len(points)
        wide = points.long()
        order = wide[:, 0].argsort()
        wide = wide[order]
        along = wide[:, 0].contiguous()
        places = torch.arange(n)
        counts = torch.searchsorted(along, along + 20, right=True) - places - 1
        first = torch.repeat_interleave(places, counts)
        within = torch.arange(len(first)) - (counts.cumsum(0) - counts)[first]
        second = first + 1 + within
        squares = (wide[first] - wide[second]).square_().sum(-1)
        kept = squares <= 400
        a, b, squares = order[first[kept]], order[second[kept]], squares[kept]
        key, back = (torch.minimum(a, b) * n + torch.maximum(a, b)).sort()
        if n == 0:
            return torch.empty(2, 0, dtype=torch.int64), torch.empty(0)
        return torch.stack([key // n, key % n]), squares[back].float().sqrt_()
