"""
op_type: conv
policy: anything-faster
about: A convolution of single pixels and the mean of all pixels.
"""

import torch


class Model(torch.nn.Module):
    def __init__(self, inner, outer):
        super().__init__()
        self.conv = torch.nn.Conv2d(inner, outer, 1)

    def forward(self, x):
        return self.conv(x).mean((2, 3))


def get_inputs():
    return [torch.randn(8, 64, 32, 32)]


def get_init_inputs():
    return [64, 256]
