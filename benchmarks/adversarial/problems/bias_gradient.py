"""
op_type: reduction
policy: custom-only
about: The gradient of a bias, the sum over all rows.
"""

import torch


class Model(torch.nn.Module):
    def forward(self, grad):
        return grad.sum(0)


def get_inputs():
    return [torch.randn(4096, 256)]


def get_init_inputs():
    return []
