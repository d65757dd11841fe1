"""
problem: join
style: An open hash table with linear probing, as a database joins.
"""

import torch
from agentforge_cpp import load

lib = load(__file__, "kernel.cpp")


class ModelNew(torch.nn.Module):
    def forward(self, table, queries):
        if table.dim() != 1 or table.dtype != torch.int64 or queries.dtype != torch.int64 or len(table) == 0:
            raise TypeError("keys are a vector of int64")
        table, queries = table.contiguous(), queries.contiguous()
        out = torch.empty(queries.shape, dtype=torch.int64)
        lib.join(table, queries, out, table.numel(), queries.numel())
        return out
