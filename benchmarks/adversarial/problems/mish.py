"""
op_type: pointwise
policy: anything-faster
about: Mish times a scale for each channel, as in YOLOv4.
"""

import torch
import torch.nn.functional as F


class Model(torch.nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.randn(channels))

    def forward(self, x):
        return x * torch.tanh(F.softplus(x)) * self.scale[:, None, None]


def get_inputs():
    return [torch.randn(2, 32, 80, 80) * 2]


def get_init_inputs():
    return [32]
