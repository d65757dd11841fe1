"""
op_type: model
policy: vendor-gemm-allowed
about: Feed-forward block with a GELU gate, as in T5 and Gemma: two projections up, one down.
"""

import torch
import torch.nn.functional as F


class Model(torch.nn.Module):
    def __init__(self, width, hidden):
        super().__init__()
        self.gate = torch.nn.Linear(width, hidden, bias=False)
        self.up = torch.nn.Linear(width, hidden, bias=False)
        self.down = torch.nn.Linear(hidden, width, bias=False)

    def forward(self, x):
        return self.down(F.gelu(self.gate(x), approximate="tanh") * self.up(x))


def get_inputs():
    return [torch.randn(4, 64, 256)]


def get_init_inputs():
    return [256, 704]
