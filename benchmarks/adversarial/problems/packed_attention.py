"""
op_type: attention
policy: anything-faster
about: Attention within each of four sequences that are packed one after the other. `starts` has their first rows and the number of all rows, as `cu_seqlens` of FlashAttention.
"""

import torch
import torch.nn.functional as F


class Model(torch.nn.Module):
    def forward(self, q, k, v, starts):
        out = torch.zeros_like(q)
        edges = starts.tolist()
        for a, b in zip(edges[:-1], edges[1:]):
            one = [t[a:b].transpose(0, 1) for t in (q, k, v)]
            out[a:b] = F.scaled_dot_product_attention(*one).transpose(0, 1)
        return out


def get_inputs():
    rows, inner = 1536, torch.randperm(1535)[:3].sort().values + 1
    starts = torch.cat([torch.tensor([0]), inner, torch.tensor([rows])])
    return [torch.randn(rows, 4, 64), torch.randn(rows, 4, 64), torch.randn(rows, 4, 64), starts]


def get_init_inputs():
    return []
