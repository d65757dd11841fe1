"""
op_type: reduction
policy: custom-only
about: The energy of each signal, with the squares written out.
"""

import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return (x * x).sum(dim=1)


def get_inputs():
    return [torch.randn(512, 8192)]


def get_init_inputs():
    return []
