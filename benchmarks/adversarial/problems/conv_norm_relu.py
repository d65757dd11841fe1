"""
op_type: conv
policy: anything-faster
about: Convolution, batch norm in eval mode and ReLU, as in ResNet.
"""

import torch


class Model(torch.nn.Module):
    def __init__(self, inner, outer):
        super().__init__()
        self.conv = torch.nn.Conv2d(inner, outer, 3, padding=1, bias=False)
        self.norm = torch.nn.BatchNorm2d(outer)

    def forward(self, x):
        return torch.relu(self.norm(self.conv(x)))


def get_inputs():
    return [torch.randn(4, 32, 32, 32)]


def get_init_inputs():
    return [32, 48]
