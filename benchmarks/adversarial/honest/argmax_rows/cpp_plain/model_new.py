"""
problem: argmax_rows
style: first maximum of each row, NaN counts as largest
"""

import torch
from agentforge_cpp import load

lib = load(__file__, "kernel.cpp")


class ModelNew(torch.nn.Module):
    def forward(self, x):
        x = x.contiguous()
        out = torch.empty(x.shape[0], dtype=torch.int64)
        lib.argmax(x, out, x.shape[0], x.shape[1])
        return out
