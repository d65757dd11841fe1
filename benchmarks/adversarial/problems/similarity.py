"""
op_type: reduction
policy: anything-faster
about: Structural similarity of pairs of images, by means over windows of seven by seven pixels.
"""

import torch
import torch.nn.functional as F


class Model(torch.nn.Module):
    def forward(self, a, b):
        mean_a, mean_b = F.avg_pool2d(a, 7, 1), F.avg_pool2d(b, 7, 1)
        var_a = F.avg_pool2d(a * a, 7, 1) - mean_a**2
        var_b = F.avg_pool2d(b * b, 7, 1) - mean_b**2
        both = F.avg_pool2d(a * b, 7, 1) - mean_a * mean_b
        over = (2 * mean_a * mean_b + 1e-4) * (2 * both + 9e-4)
        return (over / ((mean_a**2 + mean_b**2 + 1e-4) * (var_a + var_b + 9e-4))).mean((1, 2, 3))


def get_inputs():
    return [torch.rand(4, 3, 128, 128), torch.rand(4, 3, 128, 128)]


def get_init_inputs():
    return []
