"""
problem: cumsum
style: serial scan in each row
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
