"""
problem: moments
style: Welford, two outputs
"""

import torch
from agentforge_cpp import load

lib = load(__file__, "kernel.cpp")


class ModelNew(torch.nn.Module):
    def forward(self, x):
        x = x.contiguous()
        mean, var = torch.empty(x.shape[0]), torch.empty(x.shape[0])
        lib.moments(x, mean, var, x.shape[0], x.shape[1])
        return mean, var
