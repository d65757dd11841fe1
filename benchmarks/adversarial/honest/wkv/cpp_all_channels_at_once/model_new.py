"""
problem: wkv
style: One pass over time in C++ for 32 channels at once, with the four exponentials in vectors. Weights are read in forward.
"""

import torch
from agentforge_cpp import load

lib = load(__file__, "kernel.cpp")


class ModelNew(torch.nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.decay = torch.nn.Parameter(torch.randn(channels))
        self.first = torch.nn.Parameter(torch.randn(channels))

    def forward(self, k, v):
        if k.shape != v.shape or k.dim() != 3 or k.shape[2] != self.decay.shape[0] or k.shape[1] == 0:
            raise ValueError("keys and values of the same shape, with at least one step")
        k, v = k.contiguous(), v.contiguous()
        out = torch.empty_like(k)
        lib.wkv(k, v, -torch.exp(self.decay.detach()), self.first.detach(), out, *k.shape)
        return out
