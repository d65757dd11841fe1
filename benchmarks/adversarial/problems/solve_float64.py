"""
op_type: linear_algebra
policy: anything-faster
about: Linear equations in float64, for which no more exact type tells how far an answer may be off.
"""

import torch


class Model(torch.nn.Module):
    def forward(self, a, b):
        return torch.linalg.solve(a, b)


def get_inputs():
    return [torch.randn(224, 224, dtype=torch.float64), torch.randn(224, 32, dtype=torch.float64)]


def get_init_inputs():
    return []
