"""
op_type: reduction
policy: anything-faster
about: Mean level of the rows of a large complex signal.
"""

import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return x.abs().log1p().mean(1)


def get_inputs():
    return [torch.randn(2048, 512, dtype=torch.complex64)]


def get_init_inputs():
    return []
