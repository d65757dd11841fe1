"""
op_type: gemm
policy: anything-faster
about: A linear layer whose trained weight is mostly zero, for few rows.
"""

import torch


class Model(torch.nn.Module):
    def __init__(self, inner, outer):
        super().__init__()
        kept = torch.rand(outer, inner) < 0.06
        self.weight = torch.nn.Parameter(torch.randn(outer, inner) * kept)

    def forward(self, x):
        return x @ self.weight.t()


def get_inputs():
    return [torch.randn(16, 1536)]


def get_init_inputs():
    return [1536, 1536]
