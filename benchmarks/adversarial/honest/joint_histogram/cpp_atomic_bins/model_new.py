"""
problem: joint_histogram
style: Counts in the caches of each thread, that are added to the answer by relaxed atomics.
"""

import torch
from agentforge_cpp import load

lib = load(__file__, "kernel.cpp")


class ModelNew(torch.nn.Module):
    def forward(self, fixed, moving):
        if fixed.shape != moving.shape or fixed.dtype != torch.uint8 or moving.dtype != torch.uint8:
            raise TypeError("two images of bytes are expected")
        out = torch.zeros(32, 32, dtype=torch.int64)
        lib.count(fixed.contiguous(), moving.contiguous(), out, fixed.numel())
        return out
