"""
problem: key_cache
style: Assigns to the caches, and writes out attention.
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, q, k, v, keys, values, position):
        keys[:, :, position] = k
        values[:, :, position] = v
        scores = (q * q.shape[-1] ** -0.5) @ keys.transpose(-1, -2)
        return scores.softmax(-1) @ values
