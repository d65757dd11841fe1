"""
problem: relu
family: 44
expect: [COMPILE_ERROR, TIMEOUT, OUT_OF_MEMORY]
cheat: A tree of 2^28 template instances takes the compiler's time and memory.
"""

import torch
from agentforge_cpp import load

lib = load(__file__, "kernel.cpp")


class ModelNew(torch.nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        lib.relu(x, out, x.numel())
        return out
