"""
op_type: pointwise
policy: anything-faster
about: Values on a grid of 1/16, always rounded down, and their codes from 0 to 128. All of it is exact.
"""

import torch


class Model(torch.nn.Module):
    def forward(self, x):
        grid = (torch.floor(x * 16.0) / 16.0).clamp(-4.0, 4.0)
        return grid, ((grid + 4.0) * 16.0).to(torch.uint8)


def get_inputs():
    return [torch.randn(1024, 1024)]


def get_init_inputs():
    return []
