"""
op_type: pointwise
policy: anything-faster
about: Scales and turns each channel of a complex signal by a learned gain and angle, by way of its length and angle.
"""

import torch


class Model(torch.nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.gain = torch.nn.Parameter(torch.ones(channels))
        self.shift = torch.nn.Parameter(torch.zeros(channels))

    def forward(self, z):
        return torch.polar(z.abs() * self.gain, z.angle() + self.shift)


def get_inputs():
    return [torch.randn(256, 256, dtype=torch.cfloat)]


def get_init_inputs():
    return [256]
