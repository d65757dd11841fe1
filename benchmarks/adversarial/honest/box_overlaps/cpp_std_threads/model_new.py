"""
problem: box_overlaps
style: C++ threads of its own for the rows, joined before the call ends, all of a pair in registers. NaN is kept by hand.
"""

import torch
from agentforge_cpp import load

lib = load(__file__, "kernel.cpp")


class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        if a.dim() != 2 or b.dim() != 2 or a.shape[1] != 4 or b.shape[1] != 4:
            raise ValueError("boxes of four numbers are expected")
        out = torch.empty(len(a), len(b))
        lib.overlaps(a.contiguous(), b.contiguous(), out, len(a), len(b), torch.get_num_threads())
        return out
