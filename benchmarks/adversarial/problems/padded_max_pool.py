"""
op_type: other
policy: anything-faster
about: Maximum pooling of a ResNet's stem, with one row and column of padding. Draws are images between 0 and 1.
"""

import torch


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.pool = torch.nn.MaxPool2d(kernel_size=3, stride=2, padding=1)

    def forward(self, x):
        return self.pool(x)


def get_inputs():
    return [torch.rand(4, 32, 112, 112)]


def get_init_inputs():
    return []
