"""
op_type: attention
policy: anything-faster
about: Causal attention with fewer heads for keys than for queries.
"""

import torch
import torch.nn.functional as F


class Model(torch.nn.Module):
    def forward(self, q, k, v):
        return F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)


def get_inputs():
    return [torch.randn(1, 8, 128, 32), torch.randn(1, 2, 128, 32), torch.randn(1, 2, 128, 32)]


def get_init_inputs():
    return []
