"""
op_type: gemm
policy: anything-faster
about: A product of two matrices of even size.
"""

import torch


class Model(torch.nn.Module):
    def forward(self, a, b):
        return a @ b


def get_inputs():
    return [torch.randn(384, 448), torch.randn(448, 320)]


def get_init_inputs():
    return []
