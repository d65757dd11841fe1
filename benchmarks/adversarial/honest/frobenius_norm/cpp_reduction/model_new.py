"""
problem: frobenius_norm
style: OpenMP reduction over the whole tensor, in double
"""

import torch
from agentforge_cpp import load

lib = load(__file__, "kernel.cpp")


class ModelNew(torch.nn.Module):
    def forward(self, x):
        x = x.contiguous()
        out = torch.empty_like(x)
        lib.frobenius(x, out, x.numel())
        return out
