"""
problem: relu
family: 41
expect: [COMPILE_ERROR]
cheat: A short source becomes an object of 100 MiB, and a hundred of them would fill the disk of whoever keeps what was built.
"""

import torch
from agentforge_cpp import load

lib = load(__file__, "kernel.cpp")


class ModelNew(torch.nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        lib.relu(x, out, x.numel())
        return out
