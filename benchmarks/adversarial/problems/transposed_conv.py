"""
op_type: convolution
policy: anything-faster
about: Transposed convolution with stride two.
"""

import torch


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.up = torch.nn.ConvTranspose2d(16, 8, 4, stride=2, padding=1)

    def forward(self, x):
        return self.up(x)


def get_inputs():
    return [torch.randn(2, 16, 24, 24)]


def get_init_inputs():
    return []
