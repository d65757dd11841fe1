"""
op_type: reduction
policy: anything-faster
about: L1 norms of a few long rows.
"""

import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return x.abs().sum(dim=1)


def get_inputs():
    return [torch.randn(16, 65536)]


def get_init_inputs():
    return []
