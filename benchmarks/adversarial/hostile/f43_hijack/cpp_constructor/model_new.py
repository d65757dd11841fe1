"""
problem: relu
family: 43
expect: [INCORRECT_NUMERICAL, CRASHED, RUNTIME_ERROR, CHEATING, COMPILE_ERROR]
cheat: A static constructor runs as the library is loaded and exits with success; a test load in the referee would end it.
"""

import torch
from agentforge_cpp import load

lib = load(__file__, "kernel.cpp")


class ModelNew(torch.nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        lib.relu(x, out, x.numel())
        return out
