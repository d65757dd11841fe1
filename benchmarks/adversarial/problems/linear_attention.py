"""
op_type: attention
policy: anything-faster
about: Causal linear attention with the feature map elu(x) + 1.
"""

import torch
import torch.nn.functional as F


class Model(torch.nn.Module):
    def forward(self, q, k, v):
        q, k = F.elu(q) + 1, F.elu(k) + 1
        state = (k[..., :, None] * v[..., None, :]).cumsum(2)
        weight = (q * k.cumsum(2)).sum(-1, keepdim=True)
        return (q[..., None, :] @ state)[..., 0, :] / weight


def get_inputs():
    return [torch.randn(2, 4, 96, 32), torch.randn(2, 4, 96, 32), torch.randn(2, 4, 96, 48)]


def get_init_inputs():
    return []
