"""
problem: near_attention
style: Blocks of 96 queries against their own keys and those of the block before, which are an overlapping as_strided view of one padded tensor.
"""

import torch
import torch.nn.functional as F

REACH = 96


class ModelNew(torch.nn.Module):
    def forward(self, q, k, v):
        steps = q.shape[-2]
        if k.shape[-2] != steps or v.shape[-2] != steps:
            raise ValueError("as many queries as keys and values are expected")
        batch = torch.broadcast_shapes(q.shape[:-2], k.shape[:-2], v.shape[:-2])
        q, k, v = (t.expand(*batch, *t.shape[-2:]).reshape(-1, *t.shape[-2:]) for t in (q, k, v))
        n, blocks = len(q), -(-steps // REACH)
        rest = blocks * REACH - steps
        queries = F.pad(q, (0, 0, 0, rest)).view(n, blocks, REACH, -1)
        pairs = []
        for t in (k, v):
            padded = F.pad(t, (0, 0, REACH, rest))
            far, near, one = padded.stride()
            pairs.append(padded.as_strided((n, blocks, 2 * REACH, t.shape[-1]), (far, REACH * near, near, one)))
        back = torch.arange(REACH)[:, None] + REACH - torch.arange(2 * REACH)
        seen = ((back >= 0) & (back < REACH)).expand(blocks, -1, -1).clone()
        seen[:1, :, :REACH] = False
        out = F.scaled_dot_product_attention(queries, *pairs, attn_mask=seen)
        return out.reshape(n, blocks * REACH, -1)[:, :steps].contiguous().view(*batch, steps, v.shape[-1])
