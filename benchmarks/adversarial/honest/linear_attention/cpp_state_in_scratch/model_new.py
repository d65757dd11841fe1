"""
problem: linear_attention
style: A recurrence with one matrix of state for each head in memory of the thread, while torch makes the features.
"""

import torch
import torch.nn.functional as F
from agentforge_cpp import load

lib = load(__file__, "kernel.cpp")


class ModelNew(torch.nn.Module):
    def forward(self, q, k, v):
        if q.shape != k.shape or q.dim() != 4 or v.shape[:3] != k.shape[:3]:
            raise ValueError("queries, keys and values of the same steps are expected")
        out = torch.empty(v.shape)
        features = [F.elu(x).add_(1).contiguous() for x in (q, k)]
        lib.attend(*features, v.contiguous(), out, q.shape[0] * q.shape[1], *q.shape[2:], v.shape[3])
        return out
