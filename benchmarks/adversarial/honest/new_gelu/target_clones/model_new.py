"""
problem: new_gelu
style: g++ makes one version of the loop for each instruction set (target_clones), and the dynamic linker chooses.
"""

import torch
from agentforge_cpp import load

lib = load(__file__, "kernel.cpp")


class ModelNew(torch.nn.Module):
    def forward(self, x):
        out = torch.empty_like(x, memory_format=torch.contiguous_format)
        if x.numel() == 0:
            return out
        lib.new_gelu(x.contiguous(), out, x.numel())
        return out
