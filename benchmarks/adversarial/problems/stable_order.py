"""
op_type: sort
policy: anything-faster
about: Numbers in order and where each stood; equal numbers keep their order.
"""

import torch


class Model(torch.nn.Module):
    def forward(self, x):
        values, places = torch.sort(x, stable=True)
        return values, places


def get_inputs():
    return [torch.randn(200_000)]


def get_init_inputs():
    return []
