"""
op_type: other
policy: custom-only
about: The order of the numbers of each row, which lie between 0 and 1. Equal numbers keep their order.
"""

import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return torch.argsort(x, dim=1, stable=True)


def get_inputs():
    return [torch.rand(60, 4096)]


def get_init_inputs():
    return []
