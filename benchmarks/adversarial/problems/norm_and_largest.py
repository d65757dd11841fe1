"""
op_type: norm
policy: anything-faster
about: Batch norm in eval mode, softplus, then the largest value of each channel.
"""

import torch


class Model(torch.nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.norm = torch.nn.BatchNorm2d(channels)

    def forward(self, x):
        return torch.nn.functional.softplus(self.norm(x)).amax((2, 3))


def get_inputs():
    return [torch.randn(8, 64, 80, 80)]


def get_init_inputs():
    return [64]
