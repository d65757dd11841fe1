"""
op_type: pointwise
policy: anything-faster
about: Keeps its last input in a buffer for whoever looks at it later; the answer does not depend on it.
"""

import torch


class Model(torch.nn.Module):
    def __init__(self, rows, columns):
        super().__init__()
        self.register_buffer("last", torch.zeros(rows, columns))

    def forward(self, x):
        self.last.copy_(x)
        return torch.relu(x)


def get_inputs():
    return [torch.randn(1024, 512)]


def get_init_inputs():
    return [1024, 512]
