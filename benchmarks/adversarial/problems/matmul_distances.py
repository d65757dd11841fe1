"""
op_type: matmul
policy: anything-faster
about: Distances between two sets of points by squares and one product. Negative rounding errors of squared distances become zero.
"""

import torch


class Model(torch.nn.Module):
    def forward(self, x, y):
        squares = x.square().sum(-1)[:, None] + y.square().sum(-1)[None, :] - 2 * x @ y.t()
        return squares.clamp(min=0).sqrt()


def get_inputs():
    return [torch.randn(384, 96), torch.randn(384, 96)]


def get_init_inputs():
    return []
