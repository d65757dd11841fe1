"""
op_type: other
policy: anything-faster
about: Rows of integers in order.
"""

import torch


class Model(torch.nn.Module):
    def forward(self, ids):
        return torch.sort(ids, dim=1).values


def get_inputs():
    return [torch.randint(0, 1 << 40, (2048, 512))]


def get_init_inputs():
    return []
