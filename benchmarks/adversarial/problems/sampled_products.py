"""
op_type: sparse
policy: anything-faster
about: Inner products of two tables' rows at the places of a compressed sparse matrix, as in attention on a graph.
"""

import torch


class Model(torch.nn.Module):
    def forward(self, a, b, starts, columns):
        rows = torch.repeat_interleave(torch.arange(len(a)), starts.diff())
        if len(rows) != len(columns):
            raise ValueError("starts and columns do not fit")
        return (a[rows] * b[columns]).sum(-1)


def get_inputs():
    inner = torch.randint(0, 30_001, (999,)).sort().values
    starts = torch.cat([torch.tensor([0]), inner, torch.tensor([30_000])])
    return [torch.randn(1000, 64), torch.randn(1200, 64), starts, torch.randint(0, 1200, (30_000,))]


def get_init_inputs():
    return []
