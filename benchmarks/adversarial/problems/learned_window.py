"""
op_type: pointwise
policy: anything-faster
about: Clips each channel to a learned window. Its width is a softplus, so the lower end is never above the upper one.
"""

import torch
import torch.nn.functional as F


class Model(torch.nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.low = torch.nn.Parameter(torch.full((channels,), -1.0))
        self.width = torch.nn.Parameter(torch.full((channels,), 1.5))

    def forward(self, x):
        return torch.clamp(x, min=self.low, max=self.low + F.softplus(self.width))


def get_inputs():
    return [torch.randn(1024, 256)]


def get_init_inputs():
    return [256]
