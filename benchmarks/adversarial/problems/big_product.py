"""
op_type: gemm
policy: anything-faster
about: A matrix product that takes both processors some 20 ms.
"""

import torch


class Model(torch.nn.Module):
    def forward(self, a, b):
        return torch.matmul(a, b)


def get_inputs():
    return [torch.randn(1024, 832), torch.randn(832, 1024)]


def get_init_inputs():
    return []
