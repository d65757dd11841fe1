"""
problem: row_sum
style: takes any strides, so that no copy is made
"""

import torch
from agentforge_cpp import Strided, load

lib = load(__file__, "kernel.cpp")


class ModelNew(torch.nn.Module):
    def forward(self, x):
        out = torch.empty(x.shape[0])
        lib.row_sum(Strided(x), out, x.shape[0], x.shape[1], x.stride(0), x.stride(1))
        return out
