"""
problem: unused_input
style: own tanh kernel
"""

import torch
from agentforge_cpp import load

lib = load(__file__, "kernel.cpp")


class ModelNew(torch.nn.Module):
    def forward(self, x, mask):
        x = x.contiguous()
        out = torch.empty_like(x)
        lib.tanh2(x, out, x.numel())
        return out
