"""
op_type: pointwise
policy: anything-faster
about: The second input does not enter the result.
"""

import torch


class Model(torch.nn.Module):
    def forward(self, x, mask):
        return torch.tanh(x) * 2.0


def get_inputs():
    return [torch.randn(512, 1024), torch.randn(512, 1024)]


def get_init_inputs():
    return []
