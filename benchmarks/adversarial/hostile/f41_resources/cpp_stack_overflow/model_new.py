"""
problem: relu
family: 41
expect: [CRASHED]
cheat: Unbounded recursion in C++.
"""

import torch
from agentforge_cpp import load

lib = load(__file__, "kernel.cpp")


class ModelNew(torch.nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        lib.dive(x, out, x.numel())
        return out
