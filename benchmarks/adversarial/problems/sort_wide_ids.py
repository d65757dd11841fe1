"""
op_type: other
policy: anything-faster
about: Integers in order. They are random numbers of 62 bits, so that none occurs twice.
"""

import torch


class Model(torch.nn.Module):
    def forward(self, ids):
        return torch.sort(ids).values


def get_inputs():
    return [torch.randint(0, 1 << 62, (1 << 18,))]


def get_init_inputs():
    return []
