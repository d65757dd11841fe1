"""
op_type: matmul
policy: anything-faster
about: Product of complex matrices.
"""

import torch


class Model(torch.nn.Module):
    def forward(self, a, b):
        return a @ b


def get_inputs():
    return [torch.randn(128, 128, dtype=torch.complex64), torch.randn(128, 128, dtype=torch.complex64)]


def get_init_inputs():
    return []
