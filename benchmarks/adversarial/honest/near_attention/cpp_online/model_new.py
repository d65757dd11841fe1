"""
problem: near_attention
style: Online softmax over the keys in reach, 32 at a time, and nothing for the others.
"""

import torch
from agentforge_cpp import load

lib = load(__file__, "kernel.cpp")


class ModelNew(torch.nn.Module):
    def forward(self, q, k, v):
        steps, width, out_width = q.shape[-2], q.shape[-1], v.shape[-1]
        if k.shape[-2:] != (steps, width) or v.shape[-2] != steps:
            raise ValueError("as many queries as keys and values are expected")
        batch = torch.broadcast_shapes(q.shape[:-2], k.shape[:-2], v.shape[:-2])
        q, k, v = (t.expand(*batch, *t.shape[-2:]).contiguous() for t in (q, k, v))
        out = torch.empty(*batch, steps, out_width)
        lib.attend(q, k, v, out, batch.numel(), steps, width, out_width, width**-0.5)
        return out
