"""
problem: chunk_attention
style: torch's causal attention for as many queries as keys, and a mask from the last key otherwise.
"""

import torch
import torch.nn.functional as F


class ModelNew(torch.nn.Module):
    def forward(self, q, k, v):
        queries, keys = q.shape[-2], k.shape[-2]
        if queries == keys:
            return F.scaled_dot_product_attention(q, k, v, is_causal=True)
        allowed = torch.ones(queries, keys, dtype=torch.bool).tril(keys - queries)
        scores = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5
        return scores.masked_fill(~allowed, float("-inf")).softmax(-1) @ v
