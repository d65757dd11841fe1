"""
op_type: pointwise
policy: anything-faster
about: The sine, which is defined for large angles too.
"""

import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return torch.sin(x)


def get_inputs():
    return [torch.randn(1024, 1024)]


def get_init_inputs():
    return []
