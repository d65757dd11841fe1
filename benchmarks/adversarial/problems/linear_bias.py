"""
op_type: gemm_epilogue
policy: vendor-gemm-allowed
about: Matrix product and bias.
"""

import torch


class Model(torch.nn.Module):
    def __init__(self, inner, outer):
        super().__init__()
        self.linear = torch.nn.Linear(inner, outer)

    def forward(self, x):
        return self.linear(x)


def get_inputs():
    return [torch.randn(256, 512)]


def get_init_inputs():
    return [512, 384]
