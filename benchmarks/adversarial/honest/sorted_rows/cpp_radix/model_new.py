"""
problem: sorted_rows
style: a radix sort of the bits, with one NaN for all of them.
"""

import torch
from agentforge_cpp import load

lib = load(__file__, "kernel.cpp")


class ModelNew(torch.nn.Module):
    def forward(self, x):
        shape = x.shape
        x = x.contiguous()
        out = torch.empty(shape)
        width = shape[-1] if shape else 1
        lib.sort_rows(x, out, x.numel() // max(width, 1), width)
        return out
