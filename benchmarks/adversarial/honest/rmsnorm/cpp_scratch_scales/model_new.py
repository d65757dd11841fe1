"""
problem: rmsnorm
style: two kernels with a scratch buffer between them
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
        scratch = torch.empty(x.shape[0])
        lib.scales(x, scratch, x.shape[0], x.shape[1], self.eps)
        lib.apply(x, scratch, self.weight, out, x.shape[0], x.shape[1])
        return out
