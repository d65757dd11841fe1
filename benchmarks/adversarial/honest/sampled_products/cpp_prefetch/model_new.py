"""
problem: sampled_products
style: Threads share the entries and not the rows, and the rows of later entries are prefetched. An error code tells of a place that does not exist.
"""

import torch
from agentforge_cpp import load

lib = load(__file__, "kernel.cpp")


class ModelNew(torch.nn.Module):
    def forward(self, a, b, starts, columns):
        if columns.dtype not in (torch.int32, torch.int64) or a.shape[1:] != b.shape[1:] or a.dim() != 2:
            raise TypeError("two tables of the same width and numbers of columns are expected")
        rows = torch.repeat_interleave(torch.arange(len(a)), starts.diff())
        if len(rows) != len(columns):
            raise ValueError("starts and columns do not fit")
        out = torch.empty(len(rows))
        columns = columns.long().contiguous()
        if lib.products(a.contiguous(), b.contiguous(), rows, columns, out, len(rows), a.shape[1], len(b)):
            raise IndexError("a column is out of range")
        return out
