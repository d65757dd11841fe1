"""
problem: grouped_attention
style: Online softmax over the keys that a query may see.
"""

import torch
import torch.nn.functional as F
from agentforge_cpp import load

lib = load(__file__, "kernel.cpp")


class ModelNew(torch.nn.Module):
    def forward(self, q, k, v):
        q, k, v = q.contiguous(), k.contiguous(), v.contiguous()
        out = torch.empty_like(q)
        b, heads, n, d = q.shape
        if d > 256 or q.shape[2] != k.shape[2]:
            raise ValueError("this kernel needs at most 256 columns and as many keys as queries")
        lib.attend(q, k, v, out, b, heads, k.shape[1], n, d)
        return out
