"""
problem: mish
style: AVX2 intrinsics with an exponential of its own (Cephes), one division in place of softplus and tanh, and a scalar tail.
"""

import torch
from agentforge_cpp import load

lib = load(__file__, "kernel.cpp")


class ModelNew(torch.nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.randn(channels))

    def forward(self, x):
        n, c, h, w = x.shape
        if c != self.scale.numel():
            raise ValueError("an image with a scale for each channel is expected")
        out = torch.empty(x.shape)
        lib.mish_scaled(x.contiguous(), self.scale.detach(), out, n * c, c, h * w)
        return out
