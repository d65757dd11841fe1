"""
op_type: other
policy: custom-only
about: Lower quartile, median and upper quartile of each row, as order statistics without interpolation, and the distance between the quartiles.
"""

import torch


class Model(torch.nn.Module):
    def forward(self, x):
        ordered = x.sort(dim=1).values
        n = x.shape[1]
        low, middle, high = ordered[:, n // 4], ordered[:, n // 2], ordered[:, (3 * n) // 4]
        return low, middle, high, high - low


def get_inputs():
    return [torch.randn(512, 1024)]


def get_init_inputs():
    return []
