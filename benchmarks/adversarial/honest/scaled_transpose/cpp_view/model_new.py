"""
problem: scaled_transpose
style: own kernel, returned as a transposed view of its own buffer
"""

import torch
from agentforge_cpp import load

lib = load(__file__, "kernel.cpp")


class ModelNew(torch.nn.Module):
    def forward(self, x):
        x = x.contiguous()
        out = torch.empty_like(x)
        lib.scale(x, out, x.numel())
        return out.t()
