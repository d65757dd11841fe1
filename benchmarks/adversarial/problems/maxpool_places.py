"""
op_type: reduction
policy: anything-faster
about: Maximum pooling that also gives the place of each maximum.
"""

import torch
import torch.nn.functional as F


class Model(torch.nn.Module):
    def forward(self, x):
        return F.max_pool2d(x, 2, return_indices=True)


def get_inputs():
    return [torch.randn(4, 16, 64, 64)]


def get_init_inputs():
    return []
