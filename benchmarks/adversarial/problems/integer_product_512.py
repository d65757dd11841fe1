"""
op_type: matmul
policy: anything-faster
about: Product of matrices of 64-bit integers.
"""

import torch


class Model(torch.nn.Module):
    def forward(self, a, b):
        return a @ b


def get_inputs():
    return [torch.randint(-30, 30, (512, 512)), torch.randint(-30, 30, (512, 384))]


def get_init_inputs():
    return []
