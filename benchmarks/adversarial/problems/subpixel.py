"""
op_type: conv
policy: anything-faster
about: Convolution, pixel shuffle and PReLU with one slope, the upsampling block of SRResNet.
"""

import torch


class Model(torch.nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv = torch.nn.Conv2d(channels, 4 * channels, 3, padding=1)
        self.shuffle = torch.nn.PixelShuffle(2)
        self.act = torch.nn.PReLU()

    def forward(self, x):
        return self.act(self.shuffle(self.conv(x)))


def get_inputs():
    return [torch.randn(2, 24, 40, 40)]


def get_init_inputs():
    return [24]
