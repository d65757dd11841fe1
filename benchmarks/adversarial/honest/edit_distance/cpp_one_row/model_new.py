"""
problem: edit_distance
style: The textbook's table, of which one row is kept in scratch memory of each thread.
"""

import torch
from agentforge_cpp import load

lib = load(__file__, "kernel.cpp")


class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        if a.shape[0] != b.shape[0]:
            raise ValueError("pairs are expected")
        a, b = a.contiguous(), b.contiguous()
        out = torch.empty(a.shape[0], dtype=torch.int64)
        lib.distances(a, b, out, a.shape[0], a.shape[1], b.shape[1])
        return out
