"""
problem: row_median
style: Scratch rows lie in an arena that reserves 16 GiB of addresses once, without memory, and makes as much usable as is needed.
"""

import torch
from agentforge_cpp import load

lib = load(__file__, "kernel.cpp")


class ModelNew(torch.nn.Module):
    def forward(self, x):
        if x.dim() != 2 or x.shape[1] == 0:
            raise ValueError("rows with elements are expected")
        x = x.contiguous()
        out = x.new_empty(x.shape[0])
        if not lib.row_median(x, out, x.shape[0], x.shape[1]):
            raise MemoryError("no addresses are left for scratch rows")
        return out
