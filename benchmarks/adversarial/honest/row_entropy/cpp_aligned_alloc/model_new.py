"""
problem: row_entropy
style: Each thread keeps a row's exponentials in memory from std::aligned_alloc, of exactly the size that it needs.
"""

import torch
from agentforge_cpp import load

lib = load(__file__, "kernel.cpp")


class ModelNew(torch.nn.Module):
    def forward(self, logits):
        if logits.dim() != 2 or logits.shape[1] == 0:
            raise ValueError("rows of logits are expected")
        logits = logits.contiguous()
        out = logits.new_empty(logits.shape[0])
        lib.entropy(logits, out, logits.shape[0], logits.shape[1])
        return out
