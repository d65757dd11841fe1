"""
op_type: pointwise
policy: custom-only
about: bool output.
"""

import torch


class Model(torch.nn.Module):
    def forward(self, a, b):
        return (a > 0) & (b > 0)


def get_inputs():
    return [torch.randn(1024, 1024), torch.randn(1024, 1024)]


def get_init_inputs():
    return []
