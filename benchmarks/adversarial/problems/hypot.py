"""
op_type: pointwise
policy: anything-faster
about: Lengths of vectors with two components, which torch.hypot gives without overflow.
"""

import torch


class Model(torch.nn.Module):
    def forward(self, a, b):
        return torch.hypot(a, b)


def get_inputs():
    return [torch.randn(512, 512), torch.randn(512, 512)]


def get_init_inputs():
    return []
