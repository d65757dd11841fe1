"""
op_type: memory
policy: anything-faster
about: Copies of a table, one for each of 24 workers that write to their own.
"""

import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return x.repeat(24, 1, 1)


def get_inputs():
    return [torch.randn(1, 512, 512)]


def get_init_inputs():
    return []
