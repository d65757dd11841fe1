"""
op_type: reduction
policy: anything-faster
about: Count, mean and variance of two groups of measurements each and of both together, in a named tuple.
"""

from typing import NamedTuple

import torch


class Moments(NamedTuple):
    count: torch.Tensor
    mean: torch.Tensor
    variance: torch.Tensor


class Model(torch.nn.Module):
    def forward(self, first, second):
        both = torch.cat([first, second])
        return Moments(torch.tensor(both.shape[0]), both.mean(0), both.var(0, unbiased=False))


def get_inputs():
    return [torch.randn(3000, 160) + 1, 2 * torch.randn(5000, 160)]


def get_init_inputs():
    return []
