"""
problem: ragged_sums
style: One segment after the other, in double. It takes the offsets as they are, which end with the number of rows.
"""

import torch
from agentforge_cpp import load

lib = load(__file__, "kernel.cpp")


class ModelNew(torch.nn.Module):
    def forward(self, x, offsets):
        x, offsets = x.contiguous(), offsets.contiguous()
        out = x.new_empty(offsets.shape[0] - 1, x.shape[1])
        lib.ragged_sums(x, offsets, out, out.shape[0], x.shape[1])
        return out
