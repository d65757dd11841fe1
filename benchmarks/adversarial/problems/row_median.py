"""
op_type: reduction
policy: anything-faster
about: The lower median of each row.
"""

import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return x.median(dim=1).values


def get_inputs():
    return [torch.randn(512, 1024)]


def get_init_inputs():
    return []
