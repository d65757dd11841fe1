"""
op_type: other
policy: anything-faster
about: Running log-partition of projected steps. The scan is in single precision whatever the input is, so the model cannot be computed in float64.
"""

import torch


class Model(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.proj = torch.nn.Linear(width, width)

    def forward(self, x):
        return torch.logcumsumexp(self.proj(x.float()), dim=1)


def get_inputs():
    return [torch.randn(4, 1024, 64)]


def get_init_inputs():
    return [64]
