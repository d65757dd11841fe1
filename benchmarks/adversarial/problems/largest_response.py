"""
op_type: reduction
policy: anything-faster
about: The largest response of each channel over all points, with a learned gain for each channel.
"""

import torch


class Model(torch.nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.gain = torch.nn.Parameter(torch.rand(channels) + 0.5)

    def forward(self, x):
        return (x * self.gain[:, None]).amax(-1)


def get_inputs():
    return [torch.randn(8, 256, 1024)]


def get_init_inputs():
    return [256]
