"""
problem: gelu
style: try around the build that raises what a person can act on
"""

import torch
from agentforge_cpp import load

try:
    lib = load(__file__, "kernel.cpp")
except RuntimeError as error:
    raise ImportError("the GELU kernel does not build here; install g++") from error


class ModelNew(torch.nn.Module):
    def forward(self, x):
        x = x.contiguous()
        out = torch.empty_like(x)
        lib.gelu(x, out, x.numel())
        return out
