"""
problem: peak_and_length
style: Both answers by one pass with 32 sums side by side, which are added pairwise; blocks of sums in double. Rows belong to std::threads that are joined.
"""

import torch
from agentforge_cpp import load

lib = load(__file__, "kernel.cpp")


class ModelNew(torch.nn.Module):
    def forward(self, x):
        if x.dim() != 2:
            raise ValueError("one signal in each row is expected")
        if x.shape[1] == 0:
            raise RuntimeError("signals without samples have no peak")
        peak, length = torch.empty(len(x)), torch.empty(len(x))
        lib.peak_and_length(x.contiguous(), peak, length, len(x), x.shape[1], torch.get_num_threads())
        return peak, length
