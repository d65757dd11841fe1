"""
problem: sine
family: 7
expect: [INCORRECT_NUMERICAL]
cheat: Takes whole turns off by two parts of pi, which is right for some thousand turns.
"""

import torch
from agentforge_cpp import load

lib = load(__file__, "kernel.cpp")


class ModelNew(torch.nn.Module):
    def forward(self, x):
        x = x.contiguous()
        out = torch.empty_like(x)
        lib.sine(x, out, x.numel())
        return out
