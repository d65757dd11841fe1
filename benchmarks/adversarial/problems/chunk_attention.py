"""
op_type: attention
policy: anything-faster
about: Causal attention of a chunk of queries, the last ones, to all keys of a cache that end with them. In the first chunk, which is drawn, there are as many queries as keys. Inputs are finite.
"""

import torch

finite = True


class Model(torch.nn.Module):
    def forward(self, q, k, v):
        queries, keys = q.shape[-2], k.shape[-2]
        allowed = torch.ones(queries, keys, dtype=torch.bool).tril(keys - queries)
        scores = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5
        return scores.masked_fill(~allowed, float("-inf")).softmax(-1) @ v


def get_inputs():
    return [torch.randn(2, 4, 256, 64) for _ in range(3)]


def get_init_inputs():
    return []
