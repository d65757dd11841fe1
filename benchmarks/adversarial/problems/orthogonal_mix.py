"""
op_type: gemm
policy: anything-faster
about: A linear layer whose weight stays orthogonal by the exponential of a skew matrix, as for recurrent networks.
"""

import torch
from torch.nn.utils.parametrizations import orthogonal


class Model(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        linear = torch.nn.Linear(width, width)
        self.linear = orthogonal(linear, orthogonal_map="matrix_exp", use_trivialization=False)

    def forward(self, x):
        return torch.tanh(self.linear(x))


def get_inputs():
    return [torch.randn(512, 96)]


def get_init_inputs():
    return [96]
