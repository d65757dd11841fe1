"""
op_type: conv
policy: anything-faster
about: A convolution over time and space. Its weight begins as that of an image network, repeated over time, as in I3D.
"""

import torch


class Model(torch.nn.Module):
    def __init__(self, channels):
        super().__init__()
        flat = torch.nn.Conv2d(channels, channels, 3, padding=1)
        self.conv = torch.nn.Conv3d(channels, channels, 3, padding=1)
        with torch.no_grad():
            self.conv.weight.copy_(flat.weight.unsqueeze(2).repeat(1, 1, 3, 1, 1) / 3)
            self.conv.bias.copy_(flat.bias)

    def forward(self, x):
        return self.conv(x)


def get_inputs():
    return [torch.randn(1, 32, 8, 40, 40)]


def get_init_inputs():
    return [32]
