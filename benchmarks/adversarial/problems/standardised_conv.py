"""
op_type: conv
policy: anything-faster
about: A convolution whose weight is standardised for each output channel in each call, as in BiT's ResNets.
"""

import torch
import torch.nn.functional as F


class Model(torch.nn.Module):
    def __init__(self, inner, outer):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(outer, inner, 3, 3) * 0.1 + 0.05)
        self.gain = torch.nn.Parameter(torch.rand(outer) + 0.5)

    def forward(self, x):
        mean = self.weight.mean((1, 2, 3), keepdim=True)
        var = self.weight.var((1, 2, 3), keepdim=True, unbiased=False)
        weight = (self.weight - mean) / torch.sqrt(var + 1e-5) * self.gain.view(-1, 1, 1, 1)
        return F.conv2d(x, weight, padding=1)


def get_inputs():
    return [torch.randn(2, 64, 28, 28)]


def get_init_inputs():
    return [64, 64]
