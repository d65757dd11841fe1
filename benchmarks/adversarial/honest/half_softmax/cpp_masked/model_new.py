"""
problem: half_softmax
style: Halves are widened in the kernel, scores that do not count are never read as numbers, and the answer is rounded once.
"""

import torch
from agentforge_cpp import load

lib = load(__file__, "kernel.cpp")


class ModelNew(torch.nn.Module):
    def forward(self, scores, mask):
        scores, mask = torch.broadcast_tensors(scores, mask)
        if scores.dtype != torch.float16 or not scores.dim():
            raise TypeError("rows of halves are expected")
        scores = scores.contiguous()
        out = torch.empty_like(scores)
        width = scores.shape[-1]
        lib.masked(scores, mask.contiguous(), out, scores.numel() // max(width, 1), width)
        return out
