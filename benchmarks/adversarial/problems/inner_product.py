"""
op_type: reduction
policy: anything-faster
about: The inner product of two long vectors with both signs.
"""

import torch


class Model(torch.nn.Module):
    def forward(self, a, b):
        return (a * b).sum()


def get_inputs():
    return [torch.randn(1 << 20), torch.randn(1 << 20)]


def get_init_inputs():
    return []
