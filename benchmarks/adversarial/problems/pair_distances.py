"""
op_type: reduction
policy: anything-faster
about: Euclidean distances between all pairs from their differences. The points of a draw are all different.
"""

import torch


class Model(torch.nn.Module):
    def forward(self, a, b):
        return (a[:, None] - b[None]).square().sum(-1).sqrt()


def get_inputs():
    return [torch.randn(256, 64), torch.randn(240, 64)]


def get_init_inputs():
    return []
