"""
op_type: gemm
policy: anything-faster
about: A linear layer of 64 MiB for a single token. Reading the weight is all of the work.
"""

import torch


class Model(torch.nn.Module):
    def __init__(self, inner, outer):
        super().__init__()
        self.linear = torch.nn.Linear(inner, outer)

    def forward(self, x):
        return self.linear(x)


def get_inputs():
    return [torch.randn(1, 4096)]


def get_init_inputs():
    return [4096, 4096]
