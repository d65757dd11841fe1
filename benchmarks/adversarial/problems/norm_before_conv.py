"""
op_type: conv
policy: anything-faster
about: Batch norm in eval mode before a convolution with padding, as where the norm of the input is the first layer of a network. The padding is zero after the norm.
"""

import torch


class Model(torch.nn.Module):
    def __init__(self, inner, outer):
        super().__init__()
        self.norm = torch.nn.BatchNorm2d(inner)
        self.conv = torch.nn.Conv2d(inner, outer, 3, padding=1)

    def forward(self, x):
        return self.conv(self.norm(x))


def get_inputs():
    return [torch.randn(8, 32, 64, 64)]


def get_init_inputs():
    return [32, 8]
