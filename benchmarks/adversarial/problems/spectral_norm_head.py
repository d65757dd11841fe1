"""
op_type: gemm
policy: anything-faster
about: The linear head of a discriminator with spectral normalisation. In eval mode the two vectors of the power iteration are buffers that stay as they are.
"""

import torch
from torch.nn.utils.parametrizations import spectral_norm


class Model(torch.nn.Module):
    def __init__(self, inner, outer):
        super().__init__()
        self.linear = spectral_norm(torch.nn.Linear(inner, outer))

    def forward(self, x):
        return self.linear(x)


def get_inputs():
    return [torch.randn(64, 1024)]


def get_init_inputs():
    return [1024, 512]
