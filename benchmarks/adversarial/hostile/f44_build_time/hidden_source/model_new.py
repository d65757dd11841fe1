"""
problem: relu
family: 44
expect: [COMPILE_ERROR]
cheat: The kernel is in a file that the name of its object does not speak for; an object in the cache would go on standing for what was there when it was built.
"""

import torch
from agentforge_cpp import load

lib = load(__file__, "kernel.cpp")


class ModelNew(torch.nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        lib.relu(x, out, x.numel())
        return out
