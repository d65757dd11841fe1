"""
op_type: sort
policy: anything-faster
about: The numbers of each row in order. NaN comes last, as torch documents.
"""

import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return x.sort(-1).values


def get_inputs():
    return [torch.randn(32, 4096)]


def get_init_inputs():
    return []
