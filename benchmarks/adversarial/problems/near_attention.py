"""
op_type: attention
policy: anything-faster
about: Causal attention to the last 96 positions, as in Mistral. Keys and values are finite.
"""

import torch
import torch.nn.functional as F

finite = True


class Model(torch.nn.Module):
    def forward(self, q, k, v):
        place = torch.arange(q.shape[-2])
        back = place[:, None] - place
        return F.scaled_dot_product_attention(q, k, v, attn_mask=(back >= 0) & (back < 96))


def get_inputs():
    return [torch.randn(1, 4, 768, 64) for _ in range(3)]


def get_init_inputs():
    return []
