"""
problem: relu
family: 44
expect: [COMPILE_ERROR, TIMEOUT, OUT_OF_MEMORY, INCORRECT_NUMERICAL, RUNTIME_ERROR]
cheat: Templates that take the compiler exponential time and memory.
"""

import torch
from agentforge_cpp import load

lib = load(__file__, "kernel.cpp")


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return torch.zeros_like(x)
