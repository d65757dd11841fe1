"""
problem: rmsnorm
style: std::thread over row blocks, joined before return
"""

import torch
from agentforge_cpp import load

lib = load(__file__, "kernel.cpp")


class ModelNew(torch.nn.Module):
    def __init__(self, features, eps):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(features))
        self.eps = eps

    def forward(self, x):
        x = x.contiguous()
        out = torch.empty_like(x)
        lib.rmsnorm(x, self.weight, out, x.shape[0], x.shape[1], self.eps)
        return out
