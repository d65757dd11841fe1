"""
op_type: normalization
policy: anything-faster
about: RMSNorm of 16-bit floats, all in 16 bits.
"""

import torch


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(256, dtype=torch.float16))

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * self.weight


def get_inputs():
    return [torch.randn(256, 256).half()]


def get_init_inputs():
    return []
