"""
problem: cumsum
style: blocks of 256 scanned apart, offsets added
"""

import torch
from agentforge_cpp import load

lib = load(__file__, "kernel.cpp")


class ModelNew(torch.nn.Module):
    def forward(self, x):
        x = x.contiguous()
        out = torch.empty_like(x)
        lib.cumsum(x, out, x.shape[0], x.shape[1])
        return out
