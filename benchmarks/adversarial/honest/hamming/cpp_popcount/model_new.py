"""
problem: hamming
style: std::popcount of whole words.
"""

import torch
from agentforge_cpp import load

lib = load(__file__, "kernel.cpp")


class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        if a.dim() != 2 or b.dim() != 2 or a.shape[1] != b.shape[1] or a.dtype != torch.int64 or b.dtype != torch.int64:
            raise ValueError("codes of the same length are expected")
        out = torch.empty(len(a), len(b), dtype=torch.int64)
        lib.hamming(a.contiguous(), b.contiguous(), out, len(a), len(b), a.shape[1])
        return out
