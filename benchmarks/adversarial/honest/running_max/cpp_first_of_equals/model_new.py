"""
problem: running_max
style: one pass; of equal values the first one is named
"""

import torch
from agentforge_cpp import load

lib = load(__file__, "kernel.cpp")


class ModelNew(torch.nn.Module):
    def forward(self, x):
        x = x.contiguous()
        values, places = torch.empty_like(x), torch.empty(x.shape, dtype=torch.int64)
        if x.numel():
            lib.running_max(x, values, places, x.shape[0], x.shape[1])
        return values, places
