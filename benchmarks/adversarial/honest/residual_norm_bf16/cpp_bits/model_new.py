"""
problem: residual_norm_bf16
style: bfloat16 as bits that are widened and rounded by hand, and three passes over a row in the cache.
"""

import torch
from agentforge_cpp import load

lib = load(__file__, "kernel.cpp")


class ModelNew(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(width))
        self.bias = torch.nn.Parameter(torch.randn(width))

    def forward(self, x, residual):
        if x.shape != residual.shape or x.dtype != torch.bfloat16 or x.shape[-1:] != self.weight.shape:
            raise ValueError("two tensors of the same shape in bfloat16 are expected")
        x, residual = x.contiguous(), residual.contiguous()
        out, total = torch.empty_like(x), torch.empty_like(x)
        cols = x.shape[-1]
        weight, bias = self.weight.detach(), self.bias.detach()
        lib.residual_norm(x, residual, weight, bias, out, total, x.numel() // cols, cols, 1e-5)
        return out, total
