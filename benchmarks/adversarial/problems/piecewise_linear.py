"""
op_type: pointwise
policy: anything-faster
about: A piecewise linear function between eight sorted knots, one slope and one offset for each of nine pieces.
"""

import torch


class Model(torch.nn.Module):
    def forward(self, x, knots, slopes, offsets):
        piece = torch.bucketize(x, knots)
        return slopes[piece] * x + offsets[piece]


def get_inputs():
    return [torch.randn(512, 1024), torch.randn(8).sort().values, torch.randn(9), torch.randn(9)]


def get_init_inputs():
    return []
