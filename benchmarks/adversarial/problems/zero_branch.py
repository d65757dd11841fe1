"""
op_type: model
policy: anything-faster
about: A residual block of a diffusion model. The last convolution of its branch begins at zero, by `zero_module` as in OpenAI's guided diffusion.
"""

import torch
import torch.nn.functional as F


def zero_module(module):
    for p in module.parameters():
        p.detach().zero_()
    return module


class Model(torch.nn.Module):
    def __init__(self, channels, groups):
        super().__init__()
        self.norm_in = torch.nn.GroupNorm(groups, channels)
        self.conv_in = torch.nn.Conv2d(channels, channels, 3, padding=1)
        self.norm_out = torch.nn.GroupNorm(groups, channels)
        self.conv_out = zero_module(torch.nn.Conv2d(channels, channels, 3, padding=1))
        self.head = torch.nn.Conv2d(channels, 4, 1)

    def forward(self, x):
        h = self.conv_in(F.silu(self.norm_in(x)))
        h = self.conv_out(F.silu(self.norm_out(h)))
        return self.head(x + h)


def get_inputs():
    return [torch.randn(1, 64, 32, 32)]


def get_init_inputs():
    return [64, 8]
