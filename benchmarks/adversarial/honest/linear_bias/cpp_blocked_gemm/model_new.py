"""
problem: linear_bias
policy: custom-only
style: own matrix product, blocked
"""

import torch
from agentforge_cpp import load

lib = load(__file__, "kernel.cpp")


class ModelNew(torch.nn.Module):
    def __init__(self, inner, outer):
        super().__init__()
        self.linear = torch.nn.Linear(inner, outer)

    def forward(self, x):
        x = x.contiguous()
        weight = self.linear.weight
        y = torch.empty(x.shape[0], weight.shape[0])
        lib.linear(x, weight, self.linear.bias, y, x.shape[0], x.shape[1], weight.shape[0])
        return y
