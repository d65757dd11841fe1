"""
problem: mean_square
style: partial sums of threads in a scratch buffer, added afterwards
"""

import torch
from agentforge_cpp import load

lib = load(__file__, "kernel.cpp")


class ModelNew(torch.nn.Module):
    def forward(self, x):
        x = x.contiguous()
        out = torch.empty(())
        sums = torch.empty(16, dtype=torch.float64)
        lib.partial(x, sums, x.numel(), 16)
        lib.finish(sums, out, x.numel(), 16)
        return out
