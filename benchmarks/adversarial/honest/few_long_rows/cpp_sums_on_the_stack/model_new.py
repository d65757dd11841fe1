"""
problem: few_long_rows
style: Threads share the columns; each has its sums of all rows in an array on the stack, as long as there are rows.
"""

import torch
from agentforge_cpp import load

lib = load(__file__, "kernel.cpp")


class ModelNew(torch.nn.Module):
    def forward(self, x):
        if x.dim() != 2 or x.shape[0] > 1024:
            raise ValueError("at most 1024 rows are expected")
        x = x.contiguous()
        out = x.new_empty(x.shape[0])
        lib.row_l1(x, out, x.shape[0], x.shape[1])
        return out
