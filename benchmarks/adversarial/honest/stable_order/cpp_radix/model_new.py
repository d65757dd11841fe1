"""
problem: stable_order
style: Radix sort by eleven bits at a time. Zeros of both signs are equal, and NaN is larger than all. Its memory is kept.
"""

import torch
from agentforge_cpp import load

lib = load(__file__, "kernel.cpp")


class ModelNew(torch.nn.Module):
    def forward(self, x):
        if x.dim() != 1 or x.dtype != torch.float32:
            raise TypeError("a vector of float32 is expected")
        x = x.contiguous()
        values, places = torch.empty_like(x), torch.empty(x.shape, dtype=torch.int64)
        lib.order(x, values, places, x.numel())
        return values, places
