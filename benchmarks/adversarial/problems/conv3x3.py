"""
op_type: convolution
policy: anything-faster
about: A 3x3 convolution with padding.
"""

import torch


class Model(torch.nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv = torch.nn.Conv2d(channels, channels, 3, padding=1, bias=False)

    def forward(self, x):
        return self.conv(x)


def get_inputs():
    return [torch.randn(2, 64, 32, 32)]


def get_init_inputs():
    return [64]
