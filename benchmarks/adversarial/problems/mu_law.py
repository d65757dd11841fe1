"""
op_type: pointwise
policy: custom-only
about: Decodes 8-bit mu-law sound to samples between -1 and 1 and applies one gain to each channel.
"""

import math

import torch


class Model(torch.nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.gain = torch.nn.Parameter(torch.rand(channels) + 0.5)

    def forward(self, codes):
        y = codes.float() * (2.0 / 255.0) - 1.0
        samples = torch.sign(y) * torch.expm1(y.abs() * math.log(256.0)) / 255.0
        return samples * self.gain[:, None]


def get_inputs():
    return [torch.randint(0, 256, (4, 8, 16384), dtype=torch.uint8)]


def get_init_inputs():
    return [8]
