"""
op_type: reduction
policy: anything-faster
about: Mean square of a batch of one, so large that unusual contents are not among timed calls.
"""

import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return (x * x).mean()


def get_inputs():
    return [torch.randn(1, 3072, 8192)]


def get_init_inputs():
    return []
