"""
problem: quartiles
style: std::nth_element in a thread_local vector, three times on ever smaller parts; four outputs from one call.
"""

import torch
from agentforge_cpp import load

lib = load(__file__, "kernel.cpp")


class ModelNew(torch.nn.Module):
    def forward(self, x):
        if x.shape[1] == 0:
            raise IndexError("rows without elements have no quartiles")
        x = x.contiguous()
        rows, cols = x.shape
        low, middle, high, distance = (x.new_empty(rows) for _ in range(4))
        lib.quartiles(x, low, middle, high, distance, rows, cols)
        return low, middle, high, distance
