"""
problem: kernel_of_pairs
style: If both sets lie in the same memory, which their addresses and strides tell, half of the pairs are computed and the others mirrored.
"""

import torch
from agentforge_cpp import load

lib = load(__file__, "kernel.cpp")


class ModelNew(torch.nn.Module):
    def __init__(self, rate):
        super().__init__()
        self.rate = rate

    def forward(self, x, y):
        if x.dim() != 2 or y.dim() != 2 or x.shape[1] != y.shape[1]:
            raise ValueError("two sets of points with as many coordinates are expected")
        same = x is y or (x.data_ptr() == y.data_ptr() and x.shape == y.shape and x.stride() == y.stride())
        out = torch.empty(len(x), len(y))
        x, y = x.contiguous(), y.contiguous()
        lib.gaussian(x, y, out, len(x), len(y), x.shape[1], self.rate, same)
        return out
