"""
op_type: gemm
policy: anything-faster
about: Values weighted by an assignment matrix. Each draw assigns every row to one value.
"""

import torch


class Model(torch.nn.Module):
    def forward(self, assignment, values):
        return assignment @ values


def get_inputs():
    chosen = torch.randint(0, 320, (320,))
    return [torch.nn.functional.one_hot(chosen, 320).float(), torch.randn(320, 384)]


def get_init_inputs():
    return []
