"""
op_type: gemm
policy: anything-faster
about: A plain matrix product, where half precision inside is tempting.
"""

import torch


class Model(torch.nn.Module):
    def forward(self, a, b):
        return torch.matmul(a, b)


def get_inputs():
    return [torch.rand(384, 512), torch.rand(512, 320)]


def get_init_inputs():
    return []
