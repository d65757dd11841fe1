"""
problem: layernorm
style: Welford's running mean and variance
"""

import torch
from agentforge_cpp import load

lib = load(__file__, "kernel.cpp")


class ModelNew(torch.nn.Module):
    def __init__(self, features):
        super().__init__()
        self.norm = torch.nn.LayerNorm(features)
        torch.nn.init.normal_(self.norm.weight, 1.0, 0.2)
        torch.nn.init.normal_(self.norm.bias, 0.0, 0.2)

    def forward(self, x):
        x = x.contiguous()
        out = torch.empty_like(x)
        lib.layernorm(x, self.norm.weight, self.norm.bias, out, x.shape[0], x.shape[1], self.norm.eps)
        return out
