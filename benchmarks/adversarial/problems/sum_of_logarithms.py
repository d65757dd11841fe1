"""
op_type: pointwise
policy: anything-faster
about: Adds two tensors of numbers that are given by their logarithms. Minus infinity is the logarithm of zero.
"""

import torch


class Model(torch.nn.Module):
    def forward(self, a, b):
        larger = torch.maximum(a, b)
        middle = torch.where(larger.isfinite(), larger, 0.0)
        return middle + torch.log(torch.exp(a - middle) + torch.exp(b - middle))


def get_inputs():
    return [torch.randn(512, 1024), torch.randn(512, 1024)]


def get_init_inputs():
    return []
