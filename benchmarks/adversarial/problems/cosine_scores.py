"""
op_type: gemm
policy: anything-faster
about: Cosines of a query with 40,000 items, whose vectors are parameters.
"""

import torch
import torch.nn.functional as F


class Model(torch.nn.Module):
    def __init__(self, items, width):
        super().__init__()
        self.items = torch.nn.Parameter(torch.randn(items, width))

    def forward(self, queries):
        return F.normalize(queries, dim=-1) @ F.normalize(self.items, dim=-1).t()


def get_inputs():
    return [torch.randn(1, 128)]


def get_init_inputs():
    return [40000, 128]
