"""
op_type: pointwise
policy: anything-faster
about: A PReLU with one slope for each channel.
"""

import torch


class Model(torch.nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.act = torch.nn.PReLU(channels)
        self.norm = torch.nn.LayerNorm(channels)

    def forward(self, x):
        return self.act(self.norm(x).amax(1))


def get_inputs():
    return [torch.randn(64, 64, 256)]


def get_init_inputs():
    return [256]
