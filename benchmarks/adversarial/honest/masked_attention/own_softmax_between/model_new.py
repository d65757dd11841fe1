"""
problem: masked_attention
policy: vendor-gemm-allowed
style: torch's two products with an own softmax in place between them, which applies scale and mask.
"""

import math

import torch
from agentforge_cpp import load

lib = load(__file__, "softmax.cpp")


class ModelNew(torch.nn.Module):
    @torch.no_grad()
    def forward(self, q, k, v, mask):
        scores = torch.matmul(q, k.transpose(-2, -1))
        if not scores.is_contiguous():
            scores = scores.contiguous()
        seen = mask.expand(scores.shape).contiguous()
        keys = scores.size(-1)
        rows = scores.numel() // max(keys, 1)
        lib.masked_softmax_(scores, seen, rows, keys, 1.0 / math.sqrt(q.size(-1)))
        return torch.matmul(scores, v)
