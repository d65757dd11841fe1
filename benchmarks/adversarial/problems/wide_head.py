"""
op_type: gemm
policy: anything-faster
about: Logits of three tokens from a head of 100 MB, which is read once.
"""

import torch


class Model(torch.nn.Module):
    def __init__(self, inner, outer):
        super().__init__()
        self.head = torch.nn.Linear(inner, outer, bias=False)

    def forward(self, x):
        return self.head(x)


def get_inputs():
    return [torch.randn(3, 1024)]


def get_init_inputs():
    return [1024, 25_000]
