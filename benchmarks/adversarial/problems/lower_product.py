"""
op_type: matmul
policy: anything-faster
about: The lower triangle of the product of two matrices, which are lower triangular in each draw, as in level 1 of KernelBench. Each call has a draw of its own.
"""

import torch

fresh_inputs = True


class Model(torch.nn.Module):
    def forward(self, a, b):
        return torch.tril(a @ b)


def get_inputs():
    return [torch.randn(768, 768).tril(), torch.randn(768, 768).tril()]


def get_init_inputs():
    return []
