"""
problem: l2_norm
style: reassociated sum in eight accumulators
"""

import torch
from agentforge_cpp import load

lib = load(__file__, "kernel.cpp")


class ModelNew(torch.nn.Module):
    def forward(self, x):
        x = x.contiguous()
        out = torch.empty_like(x)
        lib.l2(x, out, x.shape[0], x.shape[1])
        return out
