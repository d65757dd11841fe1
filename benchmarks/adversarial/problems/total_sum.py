"""
op_type: reduction
policy: anything-faster
about: One number of a million; what a single element gives lies within every relative tolerance.
"""

import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return x.sum()


def get_inputs():
    return [torch.rand(1024, 1024)]


def get_init_inputs():
    return []
