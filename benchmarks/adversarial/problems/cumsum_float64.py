"""
op_type: reduction
policy: anything-faster
about: Long running sums in float64, for which no more exact type tells how far an answer may be off.
"""

import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return torch.cumsum(x, dim=1)


def get_inputs():
    return [torch.randn(8, 262144, dtype=torch.float64)]


def get_init_inputs():
    return []
