"""
problem: relu
family: 44
expect: [COMPILE_ERROR, RUNTIME_ERROR, TIMEOUT, INCORRECT_NUMERICAL]
cheat: Includes files that block or never end when the builder reads them to hash them.
"""

import torch
from agentforge_cpp import load

lib = load(__file__, "kernel.cpp")


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return torch.zeros_like(x)
