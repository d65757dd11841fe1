"""
op_type: other
policy: anything-faster
about: Each row's tokens in order. Few tokens are frequent, as in any text.
"""

import torch


class Model(torch.nn.Module):
    def forward(self, ids):
        return torch.sort(ids, dim=1).values


def get_inputs():
    return [(30000 * torch.rand(64, 4096) ** 16).long()]


def get_init_inputs():
    return []
