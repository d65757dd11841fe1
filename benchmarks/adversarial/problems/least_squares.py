"""
op_type: linalg
policy: anything-faster
about: Least squares in double precision for 16 tables of measurements.
"""

import torch


class Model(torch.nn.Module):
    def forward(self, a, b):
        return torch.linalg.lstsq(a, b).solution


def get_inputs():
    return [torch.randn(16, 1024, 12, dtype=torch.float64), torch.randn(16, 1024, 4, dtype=torch.float64)]


def get_init_inputs():
    return []
