"""
problem: filled_softmax
style: Three passes over each row in C++, with inputs made contiguous.
"""

import torch
from agentforge_cpp import load

lib = load(__file__, "kernel.cpp")


class ModelNew(torch.nn.Module):
    def forward(self, scores, mask):
        if scores.dtype != torch.float32 or scores.shape != mask.shape:
            raise ValueError("float32 scores and a mask of their shape are expected")
        scores, mask = scores.contiguous(), mask.contiguous()
        out = torch.empty(scores.shape)
        width = scores.shape[-1]
        if out.numel():
            lib.filled_softmax(scores, mask, out, out.numel() // width, width)
        return out
