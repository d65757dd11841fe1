"""
op_type: norm
policy: anything-faster
about: Group norm over groups whose size is no power of two, so the reciprocal of their size is rounded.
"""

import torch


class Model(torch.nn.Module):
    def __init__(self, groups, channels):
        super().__init__()
        self.norm = torch.nn.GroupNorm(groups, channels)

    def forward(self, x):
        return self.norm(x)


def get_inputs():
    return [torch.randn(32, 36, 11, 10)]


def get_init_inputs():
    return [18, 36]
