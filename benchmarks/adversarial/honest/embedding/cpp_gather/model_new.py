"""
problem: embedding
style: memcpy of rows
"""

import torch
from agentforge_cpp import load

lib = load(__file__, "kernel.cpp")


class ModelNew(torch.nn.Module):
    def __init__(self, rows, width):
        super().__init__()
        self.table = torch.nn.Embedding(rows, width)

    def forward(self, ids):
        ids = ids.contiguous()
        table = self.table.weight
        out = torch.empty(ids.shape[0], table.shape[1])
        lib.gather(ids, table, out, ids.numel(), table.shape[1])
        return out
