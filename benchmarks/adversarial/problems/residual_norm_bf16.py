"""
op_type: norm
policy: anything-faster
about: A residual sum in bfloat16 and its LayerNorm, taken in single precision. Both are given.
"""

import torch
import torch.nn.functional as F


class Model(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(width))
        self.bias = torch.nn.Parameter(torch.randn(width))

    def forward(self, x, residual):
        total = x + residual
        return F.layer_norm(total.float(), total.shape[-1:], self.weight, self.bias, 1e-5).bfloat16(), total


def get_inputs():
    return [torch.randn(512, 640).bfloat16(), torch.randn(512, 640).bfloat16()]


def get_init_inputs():
    return [640]
