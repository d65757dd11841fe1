"""
problem: mean_square
style: OpenMP reduction in double
"""

import torch
from agentforge_cpp import load

lib = load(__file__, "kernel.cpp")


class ModelNew(torch.nn.Module):
    def forward(self, x):
        x = x.contiguous()
        out = torch.empty(())
        lib.mean_square(x, out, x.numel())
        return out
