"""
problem: inner_product
style: The textbook loop, parallel for simd with a reduction in float, without a second array.
"""

import torch
from agentforge_cpp import load

lib = load(__file__, "kernel.cpp")


class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        if a.shape != b.shape:
            raise ValueError("vectors of the same length are expected")
        a, b = a.contiguous(), b.contiguous()
        out = torch.empty(())
        lib.inner(a, b, out, a.numel())
        return out
