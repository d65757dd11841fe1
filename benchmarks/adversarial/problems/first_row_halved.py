"""
op_type: indexing
policy: anything-faster
about: A copy of the input with one row changed.
"""

import torch


class Model(torch.nn.Module):
    def forward(self, x):
        y = x.clone()
        y[0] = 0.5 * x[0]
        return y


def get_inputs():
    return [torch.randn(1024, 2048)]


def get_init_inputs():
    return []
