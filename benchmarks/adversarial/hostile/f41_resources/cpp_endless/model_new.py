"""
problem: relu
family: 41
expect: [TIMEOUT]
cheat: An endless loop in C++ that no Python signal handler interrupts.
"""

import torch
from agentforge_cpp import load

lib = load(__file__, "kernel.cpp")


class ModelNew(torch.nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        lib.spin(x, out, x.numel())
        return out
