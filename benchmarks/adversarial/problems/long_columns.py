"""
op_type: reduction
policy: anything-faster
about: The mean of each column of measurements whose values are far from zero.
"""

import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return x.mean(0)


def get_inputs():
    return [torch.randn(40000, 24) + 300]


def get_init_inputs():
    return []
