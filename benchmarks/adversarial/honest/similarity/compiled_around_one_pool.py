"""
problem: similarity
style: torch.compile for the five maps before and the formula after one pooling of all maps.
"""

import torch
import torch.nn.functional as F


@torch.compile
def maps(a, b):
    return torch.stack([a, b, a * a, b * b, a * b])


@torch.compile
def formula(means):
    mean_a, mean_b, aa, bb, ab = means.unbind(0)
    cross, squares = mean_a * mean_b, mean_a * mean_a + mean_b * mean_b
    over = (2 * cross + 1e-4) * (2 * (ab - cross) + 9e-4)
    return (over / ((squares + 1e-4) * (aa + bb - squares + 9e-4))).mean((1, 2, 3))


class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        if a.shape != b.shape:
            raise ValueError("pairs of images are expected")
        five = maps(a, b)
        means = F.avg_pool2d(five.flatten(0, 1), 7, 1)
        return formula(means.unflatten(0, five.shape[:2]))
