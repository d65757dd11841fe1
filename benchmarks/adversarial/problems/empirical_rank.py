"""
op_type: indexing
policy: anything-faster
about: The share of a sorted sample that is at most as large as each number.
"""

import torch


class Model(torch.nn.Module):
    def forward(self, x, sample):
        return torch.searchsorted(sample, x, right=True).to(x.dtype) / sample.numel()


def get_inputs():
    return [torch.randn(256, 384), torch.randn(1000).sort().values]


def get_init_inputs():
    return []
