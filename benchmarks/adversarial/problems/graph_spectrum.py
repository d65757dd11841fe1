"""
op_type: other
policy: anything-faster
about: Magnitudes of the eigenvalues of matrices, in order. Each draw has matrices of undirected graphs, and the model takes those of directed ones as well.
"""

import torch


class Model(torch.nn.Module):
    def forward(self, edges):
        return torch.sort(torch.linalg.eigvals(edges).abs(), dim=-1, stable=True).values


def get_inputs():
    edges = torch.randn(8, 48, 48)
    return [(edges + edges.mT) / 2]


def get_init_inputs():
    return []
