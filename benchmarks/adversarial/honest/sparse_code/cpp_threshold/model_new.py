"""
problem: sparse_code
style: Finds the smallest activation to keep by nth_element; of equal ones the first are kept.
"""

import torch
from agentforge_cpp import load

lib = load(__file__, "kernel.cpp")


class ModelNew(torch.nn.Module):
    def __init__(self, k):
        super().__init__()
        self.k = k

    def forward(self, x):
        if x.dim() != 2 or x.shape[1] < self.k:
            raise ValueError("rows with at least k elements are expected")
        x = x.contiguous()
        out = torch.empty_like(x)
        lib.keep_largest(x, out, x.shape[0], x.shape[1], self.k)
        return out
