"""
op_type: attention
policy: anything-faster
about: Writes new keys and values into their caches, then attends to them.
"""

import torch
import torch.nn.functional as F


class Model(torch.nn.Module):
    def forward(self, q, k, v, keys, values, position):
        keys.index_copy_(2, position, k)
        values.index_copy_(2, position, v)
        return F.scaled_dot_product_attention(q, keys, values)


def get_inputs():
    return [
        *(torch.randn(1, 4, 1, 64) for _ in range(3)),
        *(torch.randn(1, 4, 256, 64) for _ in range(2)),
        torch.randint(0, 256, (1,)),
    ]


def get_init_inputs():
    return []
