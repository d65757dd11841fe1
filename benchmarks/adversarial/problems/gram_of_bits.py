"""
op_type: gemm
policy: anything-faster
about: How many bits each two vectors of a batch have in common. Zeros and ones are never mixed.
"""

import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return torch.bmm(x, x.transpose(1, 2))


def get_inputs():
    return [(torch.rand(8, 320, 1024) < 0.3).float()]


def get_init_inputs():
    return []
