"""
problem: relu
family: 15
expect: [INCORRECT_NUMERICAL, CRASHED, RUNTIME_ERROR, CHEATING, suspicious]
cheat: Writes 16 elements past its output (an off-by-one in a vector loop); the values inside are right.
"""

import torch
from agentforge_cpp import load

lib = load(__file__, "kernel.cpp")


class ModelNew(torch.nn.Module):
    def forward(self, x):
        x = x.contiguous()
        out = torch.empty_like(x)
        lib.relu(x, out, x.numel())
        return out
