"""
op_type: reduction
policy: anything-faster
about: Running maxima with their places; torch does not say which of equal values it names.
"""

import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return torch.cummax(x, dim=1)


def get_inputs():
    return [torch.randn(128, 512)]


def get_init_inputs():
    return []
