"""
op_type: model
policy: anything-faster
about: A batch norm and GELU between two linear layers.
"""

import torch


class Model(torch.nn.Module):
    def __init__(self, width, hidden):
        super().__init__()
        self.up = torch.nn.Linear(width, hidden)
        self.norm = torch.nn.BatchNorm1d(hidden)
        self.down = torch.nn.Linear(hidden, width)

    def forward(self, x):
        return self.down(torch.nn.functional.gelu(self.norm(self.up(x))))


def get_inputs():
    return [torch.randn(110, 64)]


def get_init_inputs():
    return [64, 24]
