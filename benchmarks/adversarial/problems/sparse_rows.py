"""
op_type: sparse
policy: anything-faster
about: A sparse matrix times dense columns. Its entries come in any order, and those at the same place add up.
"""

import torch


class Model(torch.nn.Module):
    def forward(self, places, values, dense):
        matrix = torch.sparse_coo_tensor(places, values, (1500, len(dense)), check_invariants=True)
        return torch.sparse.mm(matrix, dense)


def get_inputs():
    places = torch.stack([torch.randint(0, 1500, (20_000,)), torch.randint(0, 1000, (20_000,))])
    return [places, torch.randn(20_000), torch.randn(1000, 48)]


def get_init_inputs():
    return []
