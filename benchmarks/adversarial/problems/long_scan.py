"""
op_type: scan
policy: anything-faster
about: Prefix sums of many numbers.
"""

import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return torch.cumsum(x, dim=0)


def get_inputs():
    return [torch.randn(1 << 18)]


def get_init_inputs():
    return []
