"""
op_type: norm
policy: anything-faster
about: Rows of norm one, with torch's own eps.
"""

import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return torch.nn.functional.normalize(x, dim=1)


def get_inputs():
    return [torch.randn(512, 512)]


def get_init_inputs():
    return []
