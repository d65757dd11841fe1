"""
op_type: gemm
policy: anything-faster
about: Cosines of features and the rows of a weight, which is normalised in each call, times a learned scale.
"""

import torch
import torch.nn.functional as F


class Model(torch.nn.Module):
    def __init__(self, inner, outer):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(outer, inner))
        self.scale = torch.nn.Parameter(torch.tensor(16.0))

    def forward(self, x):
        return self.scale * F.linear(F.normalize(x, dim=-1), F.normalize(self.weight, dim=-1))


def get_inputs():
    return [torch.randn(16, 512)]


def get_init_inputs():
    return [512, 4000]
