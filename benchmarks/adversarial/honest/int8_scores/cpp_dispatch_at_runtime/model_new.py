"""
problem: int8_scores
style: Intrinsics for AVX-512, AVX2 or none; the processor is asked at the first call.
"""

import torch
from agentforge_cpp import load

lib = load(__file__, "kernel.cpp")


class ModelNew(torch.nn.Module):
    def forward(self, queries, keys):
        if queries.shape[-1] != keys.shape[-1] or queries.dim() != 2 or keys.dim() != 2:
            raise ValueError("vectors of the same length are expected")
        queries, keys = queries.contiguous(), keys.contiguous()
        out = torch.empty(len(queries), len(keys), dtype=torch.int32)
        lib.scores(queries, keys, out, len(queries), len(keys), queries.shape[1])
        return out
