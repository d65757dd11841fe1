"""
problem: channel_norm
style: Welford's moments of 16 lanes that are merged by Chan's formula.
"""

import torch
from agentforge_cpp import load

lib = load(__file__, "kernel.cpp")


class ModelNew(torch.nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.rand(channels) + 0.5)
        self.bias = torch.nn.Parameter(torch.randn(channels))

    def forward(self, x):
        if x.dim() != 4 or x.shape[1] != self.weight.numel():
            raise ValueError("a batch of images with as many channels is expected")
        rows = x.permute(0, 2, 3, 1).contiguous()
        y = torch.empty_like(rows)
        channels = x.shape[1]
        lib.normalise(rows, self.weight, self.bias, y, rows.numel() // channels, channels, 1e-6)
        y = y.permute(0, 3, 1, 2)
        out = torch.empty_like(x)
        return y if out.stride() == y.stride() else out.copy_(y)
