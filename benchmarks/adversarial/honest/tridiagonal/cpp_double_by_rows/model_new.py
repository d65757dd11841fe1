"""
problem: tridiagonal
style: One system after the other in double precision, without fast-math.
"""

import torch
from agentforge_cpp import load

lib = load(__file__, "kernel.cpp")


class ModelNew(torch.nn.Module):
    def forward(self, lower, diagonal, upper, right):
        shape = diagonal.shape
        if len(shape) != 2 or shape[1] == 0 or any(t.shape != shape for t in (lower, upper, right)):
            raise ValueError("systems of the same size are expected")
        out = torch.empty(shape)
        lib.solve(*(t.contiguous() for t in (lower, diagonal, upper, right)), out, *shape)
        return out
