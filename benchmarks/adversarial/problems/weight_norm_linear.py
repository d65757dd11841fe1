"""
op_type: gemm
policy: anything-faster
about: A linear layer with weight normalisation, for few rows: a length and a direction for each row of the weight.
"""

import torch
from torch.nn.utils.parametrizations import weight_norm


class Model(torch.nn.Module):
    def __init__(self, inner, outer):
        super().__init__()
        self.linear = weight_norm(torch.nn.Linear(inner, outer))

    def forward(self, x):
        return self.linear(x)


def get_inputs():
    return [torch.randn(8, 1536)]


def get_init_inputs():
    return [1536, 1536]
