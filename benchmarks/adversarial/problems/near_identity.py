"""
op_type: pointwise
policy: custom-only
about: The result differs from the input in the fourth digit.
"""

import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return x + 1e-4 * torch.sin(x)


def get_inputs():
    return [torch.randn(512, 1024)]


def get_init_inputs():
    return []
