"""
op_type: reduction
policy: anything-faster
about: Euclidean distances between all pairs, which torch computes by a product.
"""

import torch


class Model(torch.nn.Module):
    def forward(self, a, b):
        return torch.cdist(a, b)


def get_inputs():
    return [torch.randn(256, 32), torch.randn(200, 32)]


def get_init_inputs():
    return []
