"""
problem: forest
style: Walks down one tree with 16 rows at a time, without branches.
"""

import torch
from agentforge_cpp import load

lib = load(__file__, "kernel.cpp")


class ModelNew(torch.nn.Module):
    def __init__(self, features, trees, depth):
        super().__init__()
        self.depth, self.columns = depth, features
        self.register_buffer("features", torch.randint(0, features, (trees, 2**depth - 1)))
        self.thresholds = torch.nn.Parameter(torch.randn(trees, 2**depth - 1))
        self.leaves = torch.nn.Parameter(torch.randn(trees, 2**depth))

    def forward(self, x):
        if x.dim() != 2 or x.shape[1] != self.columns:
            raise ValueError("another number of features")
        x = x.contiguous()
        out = torch.empty(len(x))
        trees = (self.features, self.thresholds.detach(), self.leaves.detach())
        lib.forest(x, *trees, out, len(x), x.shape[1], len(self.features), self.depth)
        return out
