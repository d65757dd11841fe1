"""
problem: block_cosines
style: Sums and differences of opposite pixels halve the products, rows first and then columns.
"""

import torch
from agentforge_cpp import load

lib = load(__file__, "kernel.cpp")


class ModelNew(torch.nn.Module):
    def forward(self, x):
        n, height, width = x.shape
        if height % 8 or width % 8:
            raise ValueError("eight must divide both sizes")
        out = torch.empty(n, height // 8, width // 8, 8, 8)
        lib.cosines(x.contiguous(), out, n * (height // 8), width)
        return out
