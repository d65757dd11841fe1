"""
problem: wide_head
style: Each row of the head is read once for four tokens, by fused multiply and add of AVX-512 or AVX2 as the processor says, else by a plain loop.
"""

import torch
from agentforge_cpp import load

lib = load(__file__, "kernel.cpp")


class ModelNew(torch.nn.Module):
    def __init__(self, inner, outer):
        super().__init__()
        self.head = torch.nn.Linear(inner, outer, bias=False)

    def forward(self, x):
        weight = self.head.weight.contiguous()
        outer, inner = weight.shape
        if x.shape[-1] != inner:
            raise RuntimeError(f"vectors of {inner} numbers are expected")
        out = torch.empty(*x.shape[:-1], outer)
        lib.logits(x.contiguous(), weight, out, x.numel() // inner, outer, inner)
        return out
