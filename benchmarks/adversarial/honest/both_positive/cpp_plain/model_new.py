"""
problem: both_positive
style: bool output
"""

import torch
from agentforge_cpp import load

lib = load(__file__, "kernel.cpp")


class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        a, b = a.contiguous(), b.contiguous()
        out = torch.empty(a.shape, dtype=torch.bool)
        lib.both(a, b, out, a.numel())
        return out
