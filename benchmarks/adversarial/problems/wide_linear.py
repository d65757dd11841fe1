"""
op_type: gemm
policy: anything-faster
about: Few long rows times fixed weights; what is asked is larger than what is drawn anew for each call.
"""

import torch


class Model(torch.nn.Module):
    def __init__(self, inner, outer):
        super().__init__()
        self.linear = torch.nn.Linear(inner, outer)

    def forward(self, x):
        return self.linear(x)


def get_inputs():
    return [torch.randn(16, 32768)]


def get_init_inputs():
    return [32768, 256]
