"""
op_type: reduction
policy: anything-faster
about: Row sums of integers. Each draw has values from 0 to 999.
"""

import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return x.sum(1)


def get_inputs():
    return [torch.randint(0, 1000, (512, 1024))]


def get_init_inputs():
    return []
