"""
op_type: matmul
policy: anything-faster
about: Product of bytes with 32-bit sums, then a scale for each column.
"""

import torch
import torch.nn.functional as F


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("weight", torch.randint(-127, 128, (128, 256), dtype=torch.int8))
        self.register_buffer("scale", torch.rand(128))

    def forward(self, x, scale):
        return (x.int() @ self.weight.int().t()).float() * scale[:, None] * self.scale


def get_inputs():
    return [torch.randint(-127, 128, (64, 256), dtype=torch.int8), torch.rand(64)]


def get_init_inputs():
    return []
