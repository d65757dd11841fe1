"""
problem: spectral_norm_head
style: Divides the output by the largest singular value, which is smaller than the weight; the vectors are the reference's buffers.
"""

import torch
import torch.nn.functional as F
from torch.nn.utils.parametrizations import spectral_norm


class ModelNew(torch.nn.Module):
    def __init__(self, inner, outer):
        super().__init__()
        self.linear = spectral_norm(torch.nn.Linear(inner, outer))

    def forward(self, x):
        parts = self.linear.parametrizations.weight
        weight, buffers = parts.original, parts[0]
        sigma = torch.dot(buffers._u, torch.mv(weight, buffers._v))
        return F.linear(x, weight).div_(sigma).add_(self.linear.bias)
