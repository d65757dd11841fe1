"""
problem: adler_rows
style: Sums of 4096 bytes each before a remainder is taken.
"""

import torch
from agentforge_cpp import load

lib = load(__file__, "kernel.cpp")


class ModelNew(torch.nn.Module):
    def forward(self, x):
        if x.dim() != 2:
            raise ValueError("rows of bytes are expected")
        out = torch.empty(len(x), dtype=torch.int64)
        lib.adler(x.contiguous(), out, len(x), x.shape[1])
        return out
