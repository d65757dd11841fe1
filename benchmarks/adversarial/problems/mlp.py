"""
op_type: model
policy: anything-faster
about: Two linear layers with GELU between them.
"""

import torch


class Model(torch.nn.Module):
    def __init__(self, width, hidden):
        super().__init__()
        self.up = torch.nn.Linear(width, hidden)
        self.down = torch.nn.Linear(hidden, width)

    def forward(self, x):
        return self.down(torch.nn.functional.gelu(self.up(x)))


def get_inputs():
    return [torch.randn(128, 256)]


def get_init_inputs():
    return [256, 512]
