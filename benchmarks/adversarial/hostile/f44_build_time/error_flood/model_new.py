"""
problem: relu
family: 44
expect: [COMPILE_ERROR, RUNTIME_ERROR]
cheat: Millions of bytes of error messages with terminal escapes and JSON of its own in them.
"""

import torch
from agentforge_cpp import load

lib = load(__file__, "kernel.cpp")


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return torch.zeros_like(x)
