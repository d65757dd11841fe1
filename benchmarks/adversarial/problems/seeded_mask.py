"""
op_type: pointwise
policy: anything-faster
about: Drops a fifth of the features, the same ones in each call, by a generator that is seeded in forward.
"""

import torch


class Model(torch.nn.Module):
    def forward(self, x):
        generator = torch.Generator().manual_seed(1234)
        keep = torch.rand(x.shape, generator=generator) < 0.8
        return x * keep / 0.8


def get_inputs():
    return [torch.randn(256, 512)]


def get_init_inputs():
    return []
