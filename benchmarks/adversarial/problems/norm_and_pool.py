"""
op_type: norm
policy: anything-faster
about: Batch norm in eval mode, ReLU, then a maximum over windows.
"""

import torch


class Model(torch.nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.norm = torch.nn.BatchNorm2d(channels)
        self.pool = torch.nn.MaxPool2d(4)

    def forward(self, x):
        return self.pool(torch.relu(self.norm(x)))


def get_inputs():
    return [torch.randn(8, 32, 96, 96)]


def get_init_inputs():
    return [32]
