"""
problem: piecewise_linear
style: Counts the knots below each number instead of a binary search, without branches.
"""

import torch
from agentforge_cpp import load

lib = load(__file__, "kernel.cpp")


class ModelNew(torch.nn.Module):
    def forward(self, x, knots, slopes, offsets):
        pieces = knots.shape[0] + 1
        if slopes.shape != (pieces,) or offsets.shape != (pieces,):
            raise ValueError("one piece more than knots")
        x, knots = x.contiguous(), knots.contiguous()
        out = torch.empty_like(x)
        lib.piecewise(x, knots, slopes.contiguous(), offsets.contiguous(), out, x.numel(), pieces - 1)
        return out
