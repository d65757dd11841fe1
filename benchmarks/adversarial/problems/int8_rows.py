"""
op_type: gemm
policy: anything-faster
about: A linear layer with 8-bit weights, one scale for each row, that are made floats in each call.
"""

import torch
import torch.nn.functional as F


class Model(torch.nn.Module):
    def __init__(self, inner, outer):
        super().__init__()
        weight = torch.randn(outer, inner)
        scale = weight.abs().amax(1) / 127
        self.register_buffer("quantised", (weight / scale[:, None]).round().to(torch.int8))
        self.scale = torch.nn.Parameter(scale)
        self.bias = torch.nn.Parameter(torch.zeros(outer))

    def forward(self, x):
        return F.linear(x, self.quantised.to(x.dtype) * self.scale[:, None], self.bias)


def get_inputs():
    return [torch.randn(32, 768)]


def get_init_inputs():
    return [768, 768]
