"""
op_type: other
policy: anything-faster
about: Sines and cosines of the times of a diffusion model. Draws have whole times from 0 to 999, as training has.
"""

import math

import torch


class Model(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.width = width

    def forward(self, times):
        half = self.width // 2
        rates = torch.exp(-math.log(10000.0) * torch.arange(half, dtype=torch.float32) / half)
        angles = times[:, None] * rates
        return torch.cat([torch.cos(angles), torch.sin(angles)], 1)


def get_inputs():
    return [torch.randint(0, 1000, (2048,)).float()]


def get_init_inputs():
    return [512]
